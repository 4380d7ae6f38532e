// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a Megatron run says of its low-rank adapters.
struct AdapterRun {
  std::optional<std::int64_t> rank;
  std::optional<ArgValue> alpha;  ///< a number; nothing where the run does not tell
  double dropout = 0.0;
  bool uses_rslora = false;
  bool uses_dora = false;
  bool has_less_for_experts = false;  ///< experts' rank may be less than the others'
  std::string told_by;                ///< in words
};

/// A number among arguments. REQUIRES: it is one.
[[nodiscard]] double as_real(const ArgValue& number);

/// Megatron-Bridge's `peft` section of run_config.yaml, else NeMo 2's `model_transform`, else the
/// run's arguments, which ms-swift calls as PEFT does. Error: kUnsupportedFormat for a kind of
/// adapter that is no LoRA.
[[nodiscard]] Result<AdapterRun> read_adapter_run(const Checkpoint& source);

}  // namespace shardwright
