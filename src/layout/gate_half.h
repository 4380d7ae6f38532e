// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright {

/// Which rows of a gated linear_fc1 a tensor has that Megatron-Core stores in halves: `weight_w`
/// and `weight_v`. Source: apply_swiglu_sharded_factory in megatron/core/transformer/mlp.py.
enum class GateHalf : std::uint8_t { kWhole, kGate, kValue };

/// What stands behind the parameter's name.
[[nodiscard]] constexpr std::string_view ending_of(GateHalf half) {
  constexpr std::string_view kEndings[] = {"", "_w", "_v"};
  return kEndings[static_cast<std::size_t>(half)];
}

/// Takes it off the name of a linear_fc1's parameter; kWhole for every other name.
[[nodiscard]] constexpr GateHalf take_gate_half(std::string_view& parameter) {
  if (parameter.find("linear_fc1.") == std::string_view::npos) return GateHalf::kWhole;
  for (const GateHalf half : {GateHalf::kGate, GateHalf::kValue}) {
    if (!parameter.ends_with(ending_of(half))) continue;
    parameter.remove_suffix(ending_of(half).size());
    return half;
  }
  return GateHalf::kWhole;
}

}  // namespace shardwright
