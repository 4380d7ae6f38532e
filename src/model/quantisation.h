// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantisation_config.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A tensor of a model that is stored as two: values, and scales to multiply them with.
struct QuantisedTensor {
  TensorDesc desc;           ///< as the family knows it: the plain name, bfloat16, its own shape
  std::uint32_t values = 0;  ///< index of the stored tensor
  std::uint32_t scales = 0;  ///< likewise
  bool is_fp4 = false;       ///< else e4m3
  /// The shape of `desc` seen from the stored values: its axes in their order, row-major.
  Dims stored_order;
  /// Per axis of desc.shape: how many elements run on with one scale, and how many scales further
  /// the next one is.
  Dims block;
  Dims stride;
};

/// The tensors of a model, however they are stored.
struct ModelTensors {
  std::vector<TensorDesc> tensors;  ///< plain ones and quantised ones, in the order of the stored
  std::vector<QuantisedTensor> quantised;
  std::vector<std::string> ignored;  ///< scales of activations and caches, which no weight needs

  [[nodiscard]] bool is_quantised(std::string_view name) const;
};

/// Joins the stored tensors of a Hugging Face checkpoint with their scales: `X` of e4m3 with
/// `X_scale_inv` or `X_scale`, and `X_blocks` with `X_scales` of fp4. Nothing depends on the
/// family. Errors: kUnmatchedSource for values without scales and scales without values, naming
/// both; kShapeMismatch; kDtypeUnsupported; kConfigMissing for quantised tensors of which the
/// config says nothing.
[[nodiscard]] Result<ModelTensors> join_scales(std::span<const TensorDesc> stored,
                                               const QuantisationConfig& config);

}  // namespace shardwright
