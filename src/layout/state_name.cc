// SPDX-License-Identifier: Apache-2.0
#include "layout/state_name.h"

namespace shardwright {

std::optional<StateName> split_state_name(std::string_view name) {
  constexpr std::string_view kStates = "optimizer.state.";
  const std::size_t at = name.find(kStates);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t dot = name.find('.', at + kStates.size());
  if (dot == std::string_view::npos || dot + 1 == name.size()) return std::nullopt;
  return StateName{name.substr(0, dot + 1), name.substr(dot + 1)};
}

}  // namespace shardwright
