// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace shardwright {

/// What models of transformers call the parameters that hold all experts of a layer, in the order
/// in which they have them.
inline constexpr std::string_view kGateUpParameter = "gate_up_proj";
inline constexpr std::string_view kDownParameter = "down_proj";

/// The ends of their names.
inline constexpr std::array<std::string_view, 2> kExpertParameters = {".experts.gate_up_proj",
                                                                      ".experts.down_proj"};

/// Whether a tensor is such a parameter, by its name.
[[nodiscard]] inline bool is_expert_parameter(std::string_view name) {
  return std::ranges::any_of(kExpertParameters,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Whether a tensor or module is of one of the experts that have theirs one by one.
[[nodiscard]] inline bool is_numbered_expert(std::string_view name) {
  constexpr std::string_view kExperts = ".experts.";
  const std::size_t at = name.find(kExperts);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = name.substr(at + kExperts.size());
  return !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
}

}  // namespace shardwright
