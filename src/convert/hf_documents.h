// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "canonical/model_facts.h"
#include "format/target_parts.h"
#include "model/quantise_choice.h"

namespace shardwright {

/// Completes an HF target: config.json (carried byte for byte, or edited where the dtype changes, a
/// quantisation is gone or prediction layers are; each edit is told in `notes`) and the model's
/// other files. `facts`: of a Megatron source; null for an HF one. `choice`: how weights are
/// quantised; without a config where they are not.
[[nodiscard]] Status add_hf_documents(const ConvertRequest& request, const Checkpoint& source,
                                      const ModelFacts* facts, const QuantiseChoice& choice,
                                      TargetParts& parts, std::vector<std::string>& notes);

/// Puts config.json and the other files of a Hugging Face model, or of the folder that
/// --hf-config gives, beside a Megatron target's tensors, in `hf/`.
[[nodiscard]] Status add_documents_beside(const ConvertRequest& request, const Checkpoint& source,
                                          TargetParts& parts, std::vector<std::string>& notes);

/// The same for a model that was put together of parts: its config.json, which speaks of no
/// quantisation where nothing is, and the other files of a folder (none where it is empty).
[[nodiscard]] Status add_merged_documents(const std::string& config, bool is_quantised,
                                          const std::string& folder, TargetParts& parts,
                                          std::vector<std::string>& notes);

}  // namespace shardwright
