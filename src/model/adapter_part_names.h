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

}  // namespace shardwright
