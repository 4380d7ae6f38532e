// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// What stands before the name of a linear of routed experts, as Megatron-Core calls it.
inline constexpr std::string_view kExpertLinears = ".experts.experts.";

[[nodiscard]] inline bool is_of_routed_experts(std::string_view name) {
  return name.find(kExpertLinears) != std::string_view::npos;
}

/// What stands behind that; empty for other names.
[[nodiscard]] inline std::string_view name_in_experts(std::string_view name) {
  const std::size_t at = name.find(kExpertLinears);
  return at == std::string_view::npos ? std::string_view()
                                      : name.substr(at + kExpertLinears.size());
}

}  // namespace shardwright
