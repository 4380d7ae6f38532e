// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "convert/model_facts.h"
#include "convert/target.h"

namespace shardwright {

/// What config.json calls the number of prediction layers.
inline constexpr std::array<std::string_view, 3> kPredictionKeys = {
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"};

/// Completes an HF target: config.json (carried byte for byte, or edited where the dtype changes, a
/// quantisation is gone or prediction layers are; each edit is told in `notes`) and the model's
/// other files. `facts`: of a Megatron source; null for an HF one.
[[nodiscard]] Status finish_hf(const ConvertRequest& request, const Checkpoint& source,
                               const ModelFacts* facts, TargetParts& parts,
                               std::vector<std::string>& notes);

/// The same for a model that was put together of parts: its config.json, which speaks of no
/// quantisation where nothing is, and the other files of a folder (none where it is empty).
[[nodiscard]] Status finish_merged(const std::string& config, bool is_quantised,
                                   const std::string& folder, TargetParts& parts,
                                   std::vector<std::string>& notes);

}  // namespace shardwright
