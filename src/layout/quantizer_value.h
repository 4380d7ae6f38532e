// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// Whether a tensor is a value that one of ModelOpt's quantizers keeps beside the module that it
/// quantises: `…linear_fc1.weight_quantizer._amax`, `…input_quantizer._pre_quant_scale`,
/// `…weight_quantizer.0._scale`. Source: modelopt/torch/quantization/plugins/megatron.py.
[[nodiscard]] constexpr bool is_quantizer_value(std::string_view name) {
  return name.find("_quantizer.") != std::string_view::npos &&
         name.substr(name.rfind('.') + 1).starts_with('_');
}

/// Whether it is one by which weights were divided, as AWQ and SmoothQuant do: what a module is
/// given has to be multiplied by it.
[[nodiscard]] constexpr bool is_smoothing_scale(std::string_view name) {
  return is_quantizer_value(name) && name.ends_with("._pre_quant_scale");
}

}  // namespace shardwright
