// SPDX-License-Identifier: Apache-2.0
#include "dcp/replica_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shardwright {
namespace {

constexpr std::string_view kReplicaMark = ".__tp_replica_";
constexpr std::string_view kShadowMark = "__shadow_";

std::optional<std::int64_t> rank_of(std::string_view digits) {
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return error == std::errc() ? std::optional(rank) : std::nullopt;
}

// What is behind `__shadow_RANK__`; absent where that is not in front.
std::optional<std::string_view> behind_shadow_mark(std::string_view name) {
  if (!name.starts_with(kShadowMark)) return std::nullopt;
  name.remove_prefix(kShadowMark.size());
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (!rank_of(name.substr(0, digits))) return std::nullopt;
  name.remove_prefix(digits);
  if (!name.starts_with("__")) return std::nullopt;
  return name.substr(2);
}

}  // namespace

std::optional<ReplicaName> parse_replica_name(std::string_view name) {
  ReplicaName parsed{name, std::nullopt, false};
  if (const auto shadowed = behind_shadow_mark(name)) {
    parsed.tensor = *shadowed;
    parsed.is_shadow = true;
  }
  const std::size_t at = parsed.tensor.rfind(kReplicaMark);
  if (at != std::string_view::npos) {
    parsed.replica = rank_of(parsed.tensor.substr(at + kReplicaMark.size()));
    parsed.tensor = parsed.tensor.substr(0, at);
    if (!parsed.replica) return std::nullopt;
  }
  const bool is_one = parsed.is_shadow || parsed.replica;
  if (!is_one || parsed.tensor.empty() || has_replica_mark(parsed.tensor)) return std::nullopt;
  return parsed;
}

std::string replica_name(std::string_view tensor, std::int64_t replica) {
  return fmt::format("{}{}{}", tensor, kReplicaMark, replica);
}

bool has_replica_mark(std::string_view name) {
  return name.find(kReplicaMark) != std::string_view::npos || behind_shadow_mark(name).has_value();
}

}  // namespace shardwright
