// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shardwright/plan.h"

namespace shardwright {

/// How a dense tensor is shared out among experts.
struct ExpertCut {
  int axis = -1;           ///< of the tensor, -1: each expert has the whole of it
  std::int64_t parts = 1;  ///< that the axis consists of, each cut on its own: gates and up rows
};

/// One of the experts.
struct ExpertPlace {
  int axis = 0;  ///< which counts experts
  std::int64_t expert = 0;
  std::int64_t granularity = 1;  ///< experts that are cut of one copy of the tensor
};

/// The sizes with one more axis at `at`, of size `value`.
[[nodiscard]] Dims with_axis(const Dims& dims, int at, std::int64_t value);

/// How many axes count layers in front of a Megatron tensor's own: one in a stack, else none.
[[nodiscard]] int layer_axes(std::string_view name);

/// Adds what of one view of a tensor of size `dense` becomes the expert's.
void add_expert_views(const ExpertCut& cut, const Dims& dense, const ExpertPlace& place,
                      const TensorView& view, ViewList& views);

}  // namespace shardwright
