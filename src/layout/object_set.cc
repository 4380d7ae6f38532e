// SPDX-License-Identifier: Apache-2.0
#include "layout/object_set.h"

#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/translated.h"

namespace shardwright {
namespace {

using Numbers = std::vector<std::int64_t>;

// The digits and dots of `2.5_4.8`, up to the underscore, and what is behind it.
Numbers numbers_of(std::string_view& text) {
  Numbers numbers;
  while (true) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return {};
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.starts_with('.')) return numbers;
    text.remove_prefix(1);
  }
}

// The first place of a set that none of `places` is; nullopt where it is full. REQUIRES: sorted.
std::optional<Numbers> first_gap(const Numbers& sizes, const std::set<Numbers>& places) {
  Numbers next(sizes.size(), 0);
  for (const Numbers& place : places) {
    if (place != next) return next;
    std::size_t axis = sizes.size();
    while (axis > 0 && ++next[axis - 1] == sizes[axis - 1]) next[--axis] = 0;
    if (axis == 0) return std::nullopt;
  }
  return next;
}

}  // namespace

std::optional<ObjectPart> object_part_of(std::string_view name) {
  constexpr std::string_view kShard = "/shard_";
  const std::size_t at = name.rfind(kShard);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = name.substr(at + kShard.size());
  ObjectPart part{name.substr(0, at), numbers_of(rest), {}};
  if (!rest.starts_with('_')) return std::nullopt;
  rest.remove_prefix(1);
  part.sizes = numbers_of(rest);
  if (!rest.empty() || part.place.empty() || part.place.size() != part.sizes.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < part.place.size(); ++i) {
    if (part.place[i] >= part.sizes[i]) return std::nullopt;
  }
  return part;
}

std::vector<LostPart> lost_objects(std::span<const std::string> names) {
  std::map<std::pair<std::string_view, Numbers>, std::set<Numbers>> sets;
  for (const std::string& name : names) {
    if (auto part = object_part_of(name)) {
      sets[{part->key, std::move(part->sizes)}].insert(std::move(part->place));
    }
  }
  std::vector<LostPart> lost;
  for (const auto& [set, places] : sets) {
    const auto& [key, sizes] = set;
    const auto gap = first_gap(sizes, places);
    if (!gap) continue;
    lost.push_back(
        {std::string(key),
         translated("{0}: found {1} of the objects that are saved together, and {0}/shard_{2}_{3} "
                    "is not among them; copy the checkpoint again from where it is whole",
                    key, places.size(), fmt::to_string(fmt::join(*gap, ".")),
                    fmt::to_string(fmt::join(sizes, ".")))});
  }
  return lost;
}

}  // namespace shardwright
