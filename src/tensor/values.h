// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "shardwright/tensor.h"

namespace shardwright {

/// How many numbers an element is: two for complex types, none for packed fp4 pairs (which nothing
/// computes with as they are), else one.
[[nodiscard]] int parts_of(DType dtype);

/// The numbers of a run of elements, parts_of() for each. Integers of more than 53 bits are
/// rounded, everything else is exact. REQUIRES: values.size() is what the bytes hold.
void decode_values(DType dtype, std::span<const std::byte> bytes, std::span<double> values);

/// One element as people read it: all digits of a number, `1+2i`, or the byte of a packed pair.
[[nodiscard]] std::string value_text(DType dtype, std::span<const std::byte> element);

}  // namespace shardwright
