// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/model_facts.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Gives the weights of convolutions that a Megatron catalog has as those of linears the shapes
/// that the family states. Errors: those of flat_convolutions; kShapeMismatch where a chunk has a
/// part of the columns only.
[[nodiscard]] Status unfold_convolutions(const ModelFacts& facts, Catalog& catalog);

}  // namespace shardwright
