// SPDX-License-Identifier: Apache-2.0
#include "layout/module_wrappers.h"

#include <algorithm>
#include <array>

namespace shardwright {

bool is_part_of_peft(std::string_view part) {
  constexpr std::array<std::string_view, 3> kParts = {"base_layer", "original_module",
                                                      "token_adapter"};
  return std::ranges::find(kParts, part) != kParts.end();
}

std::string without_module_wrappers(std::string_view name) {
  constexpr std::array<std::string_view, 3> kWrappers = {"_fsdp_wrapped_module", "_orig_mod",
                                                         "_checkpoint_wrapped_module"};
  std::string plain;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    const bool is_wrapper = std::ranges::find(kWrappers, part) != kWrappers.end();
    if (!is_wrapper && !is_part_of_peft(part)) {
      if (at > 0 && !plain.empty()) plain += '.';
      plain += part;
    }
    at = dot + 1;
  }
  return plain;
}

}  // namespace shardwright
