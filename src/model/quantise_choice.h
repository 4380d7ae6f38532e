// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantisation.h"
#include "shardwright/quantising.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// How a release is quantised, which a model is or was made of.
struct ReleasedQuantisation {
  std::string config;                ///< its quantization_config as JSON; empty: nothing is known
  std::vector<std::string> tensors;  ///< those that were, by the model's names
};

/// How the weights of a Hugging Face model are to be stored, and which of them.
struct QuantiseChoice {
  Quantising form = {};  ///< without a shape
  std::string value_ending;
  std::string scale_ending;
  bool replaces_weight = false;  ///< `X.weight` has its scales in `X.scale`
  DType scale_dtype = DType::kF32;
  std::string config;             ///< the quantization_config to be written, as JSON
  bool was_of_exponents = false;  ///< the scales of the release are powers of two
  bool lists_left = false;        ///< it is to name all that is left as it is
  std::string expert_dtype;       ///< what config.json calls that of the experts; empty: nothing
  std::vector<std::string> left;  ///< modules that the config leaves as they are
  std::set<std::string, std::less<>> released;  ///< not empty: these are quantised and no others

  /// Whether the config leaves a module as it is.
  [[nodiscard]] bool leaves(std::string_view module) const;
  /// Whether a tensor of the model is quantised.
  [[nodiscard]] bool takes(const TensorDesc& desc) const;
  [[nodiscard]] std::string name_of_values(const std::string& name) const;
  [[nodiscard]] std::string name_of_scales(const std::string& name) const;
};

/// `config_json` is the model's, whose own quantization_config is taken where it is of the wanted
/// kind, and else that of the release. `wants_exponents`: of fp8, scales that are powers of two
/// even where neither says so. Errors: kJsonCorrupt; kUnsupportedFormat for fp4 in blocks of a
/// model that is no GPT-OSS.
[[nodiscard]] Result<QuantiseChoice> choose_quantisation(Quantising::Scheme wanted,
                                                         bool wants_exponents,
                                                         std::string_view config_json,
                                                         const ReleasedQuantisation& release);

/// What of a model with this config.json is quantised in a form that can be written again: blocks
/// of e4m3, fp4 in blocks. Nothing where it is in another form, or not. Error: kJsonCorrupt.
[[nodiscard]] Result<ReleasedQuantisation> released_quantisation(const ModelTensors& model,
                                                                 std::string_view config_json);

}  // namespace shardwright
