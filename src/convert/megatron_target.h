// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "convert/model_facts.h"
#include "convert/target.h"

namespace shardwright {

/// Completes a torch_dist target out of Megatron tensors: heights of vocabulary tensors, opaque
/// entries, common state, markers and carried artifacts. `selected` is the source's catalog after
/// selection.
[[nodiscard]] Status finish_from_megatron(const ConvertRequest& request, const Checkpoint& source,
                                          const Catalog& selected, TargetParts& parts,
                                          std::vector<std::string>& notes);

/// The same out of an HF model, whose tensors are `hf`.
[[nodiscard]] Status finish_from_hf(const ConvertRequest& request, std::span<const TensorDesc> hf,
                                    const ModelFacts& facts, TargetParts& parts,
                                    std::vector<std::string>& notes);

}  // namespace shardwright
