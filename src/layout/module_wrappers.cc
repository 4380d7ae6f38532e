// SPDX-License-Identifier: Apache-2.0
#include "layout/module_wrappers.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace shardwright {

bool is_part_of_peft(std::string_view part) {
  constexpr std::array<std::string_view, 3> kParts = {"base_layer", "original_module",
                                                      "token_adapter"};
  return std::ranges::find(kParts, part) != kParts.end();
}

bool is_module_wrapper(std::string_view part) {
  constexpr std::array<std::string_view, 3> kWrappers = {"_fsdp_wrapped_module", "_orig_mod",
                                                         "_checkpoint_wrapped_module"};
  return std::ranges::find(kWrappers, part) != kWrappers.end();
}

bool has_module_wrapper(std::string_view name) {
  if (!name.contains("_wrapped_module") && !name.contains("_orig_mod")) return false;
  return std::ranges::any_of(split_at(name, '.'), is_module_wrapper);
}

std::string without_module_wrappers(std::string_view name) {
  std::string plain;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t dot = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, dot - at);
    if (!is_module_wrapper(part) && !is_part_of_peft(part)) {
      if (at > 0 && !plain.empty()) plain += '.';
      plain += part;
    }
    at = dot + 1;
  }
  return plain;
}

}  // namespace shardwright
