// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "shardwright/tensor.h"
#include "tensor/strided_copy.h"

namespace shardwright {

/// A change of values while they are copied: to another floating point type, or by a constant.
struct Conversion {
  DType from = DType::kF32;
  DType to = DType::kF32;
  double add = 0.0;

  [[nodiscard]] bool is_identity() const { return from == to && add == 0.0; }
};

/// Whether `convert_run` can do it: identity, or between f16, bf16, f32 and f64.
[[nodiscard]] bool is_supported(const Conversion& conversion);

/// Converts `count` elements that lie `source_stride` and `target_stride` bytes apart. Rounds to
/// nearest, ties to even; NaNs stay NaNs; identity copies elements of any type. Error:
/// kValueOverflow when a finite value does not fit the target type (f16), with its index in the
/// run; kDtypeUnsupported, with nothing touched, unless is_supported().
[[nodiscard]] Status convert_run(const Conversion& conversion, std::int64_t count,
                                 const std::byte* source, std::int64_t source_stride,
                                 std::byte* target, std::int64_t target_stride);

/// The same for a region.
[[nodiscard]] Status convert_region(const Conversion& conversion, const CopyLoops& loops,
                                    const std::byte* source, std::byte* target);

}  // namespace shardwright
