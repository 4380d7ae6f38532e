// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "canonical/model_facts.h"
#include "format/target_parts.h"
#include "model/quantisation.h"

namespace shardwright {

/// Without experts nothing is cut by their sizes: then the tensor size is the model's, as Megatron
/// records it, whatever was given. A smaller one would say that ranks' files were never written
/// (L07). Of several expert ranks each would get the same files, and Megatron refuses such a job.
void settle_expert_sizes(const TargetParts& parts, ParallelConfig& parallel,
                         std::vector<std::string>& notes);

/// The layout that Megatron's --use-checkpoint-args would take over, as arguments in
/// TargetParts::layout; `model`: the model's, of which some say which layers a stage has. Errors:
/// those of Placement::make.
[[nodiscard]] Status add_layout_arguments(const ParallelConfig& parallel, const Arguments& model,
                                          TargetParts& parts);

/// Whether layers of the main stack have numbers in their names.
[[nodiscard]] bool has_numbered_layers(const TargetParts& parts);

/// Completes a torch_dist target out of Megatron tensors: heights of vocabulary tensors, opaque
/// entries, common state, markers and carried artifacts. `selected` is the source's catalog after
/// selection.
[[nodiscard]] Status add_state_from_megatron(const ConvertRequest& request,
                                             const Checkpoint& source, const Catalog& selected,
                                             TargetParts& parts, std::vector<std::string>& notes);

/// The same out of an HF model.
[[nodiscard]] Status add_state_from_hf(const ConvertRequest& request, const ModelTensors& model,
                                       const ModelFacts& facts, TargetParts& parts,
                                       std::vector<std::string>& notes);

}  // namespace shardwright
