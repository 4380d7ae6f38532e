// SPDX-License-Identifier: Apache-2.0
#include "layout/numbered_name.h"

#include "base/text.h"

namespace shardwright {

std::vector<LayerName> split_at_numbers(std::string_view name) {
  std::vector<LayerName> splits;
  for (std::size_t at = name.find('.'); at != std::string_view::npos; at = name.find('.', at + 1)) {
    std::string_view rest = name.substr(at + 1);
    const auto number = take_number(rest);
    if (number && rest.starts_with('.')) {
      splits.push_back({name.substr(0, at), *number, rest.substr(1)});
    }
  }
  return splits;
}

}  // namespace shardwright
