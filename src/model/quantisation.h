// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantisation_config.h"
#include "model/quantised_tensor.h"
#include "model/stored_tensors.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The tensors of a model, however they are stored.
struct ModelTensors {
  std::vector<TensorDesc> tensors;  ///< plain ones and quantised ones, in the order of the stored
  std::vector<QuantisedTensor> quantised;
  std::vector<std::string> ignored;  ///< scales of activations and caches, which no weight needs
  /// Of gptq, whose writers gave each linear one: in all layers they add nothing.
  std::vector<std::string> zero_biases;

  [[nodiscard]] bool is_quantised(std::string_view name) const;
};

/// Joins the stored tensors of a Hugging Face checkpoint with what their values are multiplied
/// with: `X` of e4m3 with `X_scale_inv`, `X_scale` or `.scale` beside `.weight`, `X_blocks` with
/// `X_scales` of fp4, and what join_packed knows. Nothing depends on the family. With `contents`
/// small tensors beside packed values are read; without them the model's names and shapes are right
/// as far as shapes tell, and nothing can be multiplied. Errors: kUnmatchedSource for values
/// without scales and scales without values, naming both; kShapeMismatch; kDtypeUnsupported;
/// kConfigMissing for quantised tensors of which the config says nothing; those of join_packed.
[[nodiscard]] Result<ModelTensors> join_scales(std::span<const TensorDesc> stored,
                                               const QuantisationConfig& config,
                                               const StoredContents* contents = nullptr);

}  // namespace shardwright
