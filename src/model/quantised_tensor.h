// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/quantised.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A tensor of a model that is stored as several: values, and what to multiply them with. The
/// indices of QuantisedSource are those of the stored tensors.
struct QuantisedTensor : QuantisedSource {
  TensorDesc desc;     ///< as the family knows it: the plain name, bfloat16, its own shape
  std::string scheme;  ///< for notes: `fp8 e4m3`, `mxfp4`, `int4`
  DType dtype = DType::kF8E4M3;  ///< of the values; kU8 for integers
  DType scale_dtype = DType::kF32;
  /// Of the stored values, as a plan's chunks have them; empty for those that lie row-major.
  Dims strides;
  /// Stored tensors that belong to it and are not needed to multiply.
  std::vector<std::uint32_t> more;
};

}  // namespace shardwright
