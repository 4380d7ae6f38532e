// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/model_facts.h"
#include "convert/target.h"

namespace shardwright {

/// Completes an HF target: config.json (carried byte for byte, or edited where the dtype changes)
/// and the model's other files. `artifacts_from` is what the artifacts are relative to: empty for
/// an HF source, `hf/` for a Megatron checkpoint that carries them.
[[nodiscard]] Status finish_hf(const ConvertRequest& request, const Checkpoint& source,
                               const ModelFacts* facts, TargetParts& parts,
                               std::vector<std::string>& notes);

}  // namespace shardwright
