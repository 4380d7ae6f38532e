// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/notes.h"
#include "canonical/model_facts.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Gives the weights of convolutions that a Megatron catalog has as those of linears, and their
/// optimizer states, the shapes that the family states. Errors: those of flat_convolutions;
/// kShapeMismatch where a chunk has a part of the columns only.
[[nodiscard]] Status unfold_convolutions(const ModelFacts& facts, Catalog& catalog);

/// Family and sizes of a Megatron source, with that done to `catalog`, what of it is wanted.
/// Errors: those of canonical_descs and find_model_facts; as above.
[[nodiscard]] Result<ModelFacts> find_megatron_facts(const FamilyChoice& choice,
                                                     const Checkpoint& source,
                                                     std::span<const Mapping> mappings,
                                                     Catalog& catalog, Notes& notes);

}  // namespace shardwright
