// SPDX-License-Identifier: Apache-2.0
#include "cli/dialect.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace shardwright::cli {
namespace {

constexpr std::array<std::string_view, 6> kSizes = {"tp", "pp", "vpp", "ep", "etp", "encoder-tp"};

std::string to_canonical_flag(const std::string& argument) {
  const std::size_t dashes = argument.starts_with("--") ? 2 : 1;
  if (argument.size() <= dashes || argument[0] != '-') return argument;
  const std::size_t end = std::min(argument.find('='), argument.size());
  if (end <= dashes) return argument;
  std::string name = argument.substr(dashes, end - dashes);
  std::replace(name.begin(), name.end(), '_', '-');
  // A single dash is only ours in front of a size: `-3` or `-x` may be a value.
  if (dashes == 1 && std::ranges::find(kSizes, name) == kSizes.end()) return argument;
  return "--" + name + argument.substr(end);
}

}  // namespace

std::vector<std::string> to_canonical_flags(std::span<const std::string> arguments) {
  std::vector<std::string> canonical(arguments.begin(), arguments.end());
  const auto options_end = std::find(canonical.begin(), canonical.end(), "--");
  std::transform(canonical.begin(), options_end, canonical.begin(), to_canonical_flag);
  return canonical;
}

}  // namespace shardwright::cli
