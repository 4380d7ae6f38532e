// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/notes.h"
#include "canonical/model_facts.h"
#include "format/target_parts.h"
#include "model/adapter_tensors.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// What a Megatron run is told of the adapters that it trains.
struct AdapterSettings {
  AdapterForm form = AdapterForm::kFused;
  std::int64_t rank = 0;
  double alpha = 0.0;
  bool uses_rslora = false;
  bool uses_dora = false;
  std::set<std::string> modules;      ///< that have adapters, as the run calls them
  std::set<std::string> saved;        ///< likewise, that are trained whole; ms-swift's only
  bool has_experts = false;           ///< routed experts are among them, each with its own
  bool has_less_for_experts = false;  ///< they have the rank by as many as a token is routed to
};

/// The state of a Megatron run that holds nothing but adapters: arguments as the base model's
/// config.json and the layout give them; the adapters' settings as their trainer looks for them,
/// in run_config.yaml (Megatron-Bridge) or args.json (ms-swift). Errors: those of
/// args_from_hf_config and of the layout.
[[nodiscard]] Status add_state_of_adapter(const ConvertRequest& request, const ModelFacts& facts,
                                          const AdapterSettings& settings, TargetParts& parts,
                                          Notes& notes);

}  // namespace shardwright
