// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace shardwright {

/// A part of an adapter in both languages: Megatron-Bridge's, ms-swift's, and the latter's without
/// the adapter's name.
struct AdapterPartNames {
  std::array<std::string_view, 3> megatron;
  std::string_view hf;
};
inline constexpr AdapterPartNames kInNames = {
    {".linear_in.weight", ".lora_A.default.weight", ".lora_A.weight"}, ".lora_A.weight"};
inline constexpr AdapterPartNames kOutNames = {
    {".linear_out.weight", ".lora_B.default.weight", ".lora_B.weight"}, ".lora_B.weight"};
inline constexpr std::string_view kMagnitude = ".adapter.weight_magnitude";
inline constexpr std::string_view kPeftMagnitude = ".lora_magnitude_vector";
inline constexpr std::string_view kAdapter = ".adapter";
inline constexpr std::string_view kGatedModule = ".linear_fc1";

/// What stands before the name of a linear of routed experts.
inline constexpr std::string_view kExpertLinears = ".experts.experts.";

/// Behind that; empty for other names.
[[nodiscard]] inline std::string_view name_in_experts(std::string_view name) {
  const std::size_t at = name.find(kExpertLinears);
  return at == std::string_view::npos ? std::string_view()
                                      : name.substr(at + kExpertLinears.size());
}

}  // namespace shardwright
