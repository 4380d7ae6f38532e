// SPDX-License-Identifier: Apache-2.0
#include "cli/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "base/checked.h"
#include "base/translated.h"

namespace shardwright::cli {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::uint64_t kOne = 1;
constexpr std::array kUnits = {
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"kb", 1'000},
    Unit{"mb", 1'000'000},
    Unit{"gb", 1'000'000'000},
    Unit{"tb", 1'000'000'000'000},
    Unit{"kib", kOne << 10},
    Unit{"mib", kOne << 20},
    Unit{"gib", kOne << 30},
    Unit{"tib", kOne << 40},
};

std::optional<std::uint64_t> unit_of(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Unit& unit : kUnits) {
    if (unit.name == lower) return unit.bytes;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

// The largest unit that leaves at least 1, and three significant digits.
std::string scaled(std::uint64_t value, double step, std::span<const std::string_view> names) {
  double number = static_cast<double>(value);
  std::size_t unit = 0;
  // 999.5 would be shown as 1000.
  while (number >= step - 0.5 && unit + 1 < names.size()) {
    number /= step;
    ++unit;
  }
  if (unit == 0) {
    return fmt::format("{} {}", value, value == 1 ? translated("byte") : translated("bytes"));
  }
  const int decimals = number < 9.995 ? 2 : (number < 99.95 ? 1 : 0);
  return fmt::format("{:.{}f} {}", number, decimals, names[unit]);
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_digits(text.substr(0, digits));
  const auto unit = unit_of(text.substr(digits));
  const auto bytes = number && unit ? checked_mul(*number, *unit) : std::nullopt;
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return bytes && *bytes > 0 && *bytes <= kLargest ? bytes : std::nullopt;
}

std::optional<std::int64_t> parse_count(std::string_view text, std::int64_t largest) {
  const auto number = parse_digits(text);
  if (!number || *number == 0 || *number > static_cast<std::uint64_t>(largest)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> parse_rank(std::string_view text) {
  constexpr std::uint64_t kLastRank = (std::uint64_t{1} << 20) - 1;
  const auto number = parse_digits(text);
  if (!number || *number > kLastRank) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kNames = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  return scaled(bytes, 1000.0, kNames);
}

std::string format_memory(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kNames = {"bytes", "KiB", "MiB", "GiB",
                                                      "TiB",   "PiB", "EiB"};
  return scaled(bytes, 1024.0, kNames);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string format_count(std::uint64_t count, std::string_view noun) {
  if (!speaks_english()) return fmt::format("{} {}", format_count(count), in_language(noun));
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string format_seconds(double seconds) {
  if (!(seconds >= 0.0)) seconds = 0.0;
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.5) return fmt::format("{:.0f} s", seconds);
  constexpr double kLongest = 1e9;
  const auto whole = static_cast<std::uint64_t>(std::llround(std::min(seconds, kLongest)));
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

}  // namespace shardwright::cli
