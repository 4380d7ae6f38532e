// SPDX-License-Identifier: Apache-2.0
#include "model/turned_weights.h"

#include <algorithm>

namespace shardwright {
namespace {

std::string_view take_last(std::string_view& path) {
  const std::size_t dot = path.rfind('.');
  const std::string_view last = dot == path.npos ? path : path.substr(dot + 1);
  path = dot == path.npos ? std::string_view() : path.substr(0, dot);
  return last;
}

// As far as both have parts, from their ends; a number's part is in braces.
bool is_named(std::string_view pattern, std::string_view name) {
  std::size_t parts = 0;
  while (!pattern.empty() && !name.empty()) {
    const std::string_view expected = take_last(pattern);
    const std::string_view found = take_last(name);
    const bool is_number = std::ranges::all_of(found, [](char c) { return c >= '0' && c <= '9'; });
    if (expected.starts_with('{') ? !is_number : expected != found) return false;
    ++parts;
  }
  return parts > 1;
}

}  // namespace

std::optional<bool> is_stored_turned(std::span<const Item> items, std::string_view weight) {
  for (const Item& item : items) {
    std::optional<bool> found;
    if (const auto* rule = std::get_if<Rule>(&item.value)) {
      const auto is_of_it = [&](const NameTemplate& hf) { return is_named(hf.text(), weight); };
      if (std::ranges::any_of(rule->hf, is_of_it)) found = rule->permute == Dims{1, 0};
    } else if (const auto* section = std::get_if<Section>(&item.value)) {
      found = is_stored_turned(section->items, weight);
    } else {
      for (const std::vector<Item>& option : std::get<Choice>(item.value).options) {
        if (!found) found = is_stored_turned(option, weight);
      }
    }
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace shardwright
