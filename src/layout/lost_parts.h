// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// A part of a model that its other parts show to be missing.
struct LostPart {
  std::string name;  ///< the tensors, or the stack of layers
  std::string what;  ///< a sentence about it, with the name
};

/// How many layers of the main stack the names show, adapters not counted.
[[nodiscard]] std::int64_t count_named_layers(std::span<const TensorDesc> tensors);

/// The numbers, up to a few, of layers that have no adapter where others have one: no loss, for a
/// run may train those of some layers. `layers` as for lost_parts().
[[nodiscard]] std::vector<std::string> layers_without_adapters(std::span<const TensorDesc> tensors,
                                                               std::int64_t layers);

/// What a Megatron model of these canonical tensors has lost: layers between its first and its last
/// one (`layers`, 0 where nothing says how many there are), experts that its routers have, and
/// tensors that a module never lacks where another of its is there (a linear of an MLP or of an
/// attention without the other, a router without experts), whatever its family, and what
/// lost_tensors() finds.
[[nodiscard]] std::vector<LostPart> lost_parts(std::span<const TensorDesc> tensors,
                                               std::int64_t layers);

/// The same for names of other trainers, which number the experts of a rank and stack the
/// expert-parallel ranks' own along the rows: each `fc2` has the router's columns as rows, once per
/// rank.
[[nodiscard]] std::vector<LostPart> lost_local_experts(std::span<const TensorDesc> tensors);

}  // namespace shardwright
