// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>

#include "base/translated.h"

namespace shardwright {
namespace {

struct CodeRange {
  char32_t first;
  char32_t last;
};

// Sorted. Characters that take no column of their own: combining marks, joiners, variation
// selectors, direction marks (Unicode's Mn, Me and Cf in the scripts that names are written in).
constexpr std::array kZeroWidth = {
    CodeRange{0x0300, 0x036F}, CodeRange{0x0483, 0x0489}, CodeRange{0x0591, 0x05BD},
    CodeRange{0x0610, 0x061A}, CodeRange{0x064B, 0x065F}, CodeRange{0x0E31, 0x0E31},
    CodeRange{0x0E34, 0x0E3A}, CodeRange{0x0E47, 0x0E4E}, CodeRange{0x1AB0, 0x1AFF},
    CodeRange{0x1DC0, 0x1DFF}, CodeRange{0x200B, 0x200F}, CodeRange{0x202A, 0x202E},
    CodeRange{0x2060, 0x2064}, CodeRange{0x2066, 0x2069}, CodeRange{0x20D0, 0x20FF},
    CodeRange{0x302A, 0x302D}, CodeRange{0x3099, 0x309A}, CodeRange{0xFE00, 0xFE0F},
    CodeRange{0xFE20, 0xFE2F}, CodeRange{0xFEFF, 0xFEFF}, CodeRange{0xE0100, 0xE01EF},
};

// Sorted. East Asian Width W and F, neighbouring blocks joined.
constexpr std::array kDoubleWidth = {
    CodeRange{0x1100, 0x115F},   CodeRange{0x231A, 0x231B},   CodeRange{0x23E9, 0x23EC},
    CodeRange{0x25FD, 0x25FE},   CodeRange{0x2614, 0x2615},   CodeRange{0x2648, 0x2653},
    CodeRange{0x26AA, 0x26AB},   CodeRange{0x2705, 0x2705},   CodeRange{0x270A, 0x270B},
    CodeRange{0x2728, 0x2728},   CodeRange{0x274C, 0x274C},   CodeRange{0x2753, 0x2755},
    CodeRange{0x2795, 0x2797},   CodeRange{0x2B1B, 0x2B1C},   CodeRange{0x2E80, 0x303E},
    CodeRange{0x3041, 0x3247},   CodeRange{0x3250, 0x4DBF},   CodeRange{0x4E00, 0xA4C6},
    CodeRange{0xA960, 0xA97C},   CodeRange{0xAC00, 0xD7A3},   CodeRange{0xF900, 0xFAFF},
    CodeRange{0xFE10, 0xFE19},   CodeRange{0xFE30, 0xFE6B},   CodeRange{0xFF01, 0xFF60},
    CodeRange{0xFFE0, 0xFFE6},   CodeRange{0x16FE0, 0x18CFF}, CodeRange{0x1AFF0, 0x1B2FF},
    CodeRange{0x1F300, 0x1F320}, CodeRange{0x1F32D, 0x1F64F}, CodeRange{0x1F680, 0x1F6C5},
    CodeRange{0x1F900, 0x1FAFF}, CodeRange{0x20000, 0x3FFFD},
};

bool is_in(std::span<const CodeRange> ranges, char32_t value) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), value,
                       [](char32_t point, const CodeRange& range) { return point < range.first; });
  return after != ranges.begin() && value <= std::prev(after)->last;
}

// C0, C1 and DEL drive terminals; direction overrides make a name read as another one.
bool is_hidden_or_active(char32_t value) {
  return value < 0x20 || (value >= 0x7F && value <= 0x9F) || (value >= 0x200B && value <= 0x200F) ||
         (value >= 0x2028 && value <= 0x202E) || (value >= 0x2060 && value <= 0x206F) ||
         value == 0xFEFF || (value >= 0xE0000 && value <= 0xE007F);
}

int width_of(CodePoint point) {
  if (!point.valid) return 1;
  if (is_in(kZeroWidth, point.value)) return 0;
  return is_in(kDoubleWidth, point.value) ? 2 : 1;
}

unsigned byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The run of digits at the front.
std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

// Compares numbers of any length: -1, 0 or 1.
int compare_digits(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int order = a.compare(b);
  return order < 0 ? -1 : (order > 0 ? 1 : 0);
}

}  // namespace

CodePoint front_code_point(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : (lead >= 0xE0 ? 3 : 2);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const unsigned next = byte_at(text, i);
    if ((next & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (next & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[bytes] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return {};
  }
  return {value, bytes, true};
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint point = front_code_point(text);
    width += width_of(point);
    text.remove_prefix(point.bytes);
  }
  return width;
}

std::string fit_width(std::string_view text, int columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string out;
  int width = 0;
  while (!text.empty()) {
    const CodePoint point = front_code_point(text);
    const int next = width_of(point);
    if (width + next > columns - 1) break;
    width += next;
    out += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  if (columns > 0) out += "…";
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = front_code_point(text);
    if (!point.valid) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte_at(text, 0));
    } else if (!is_hidden_or_active(point.value)) {
      out += text.substr(0, point.bytes);
    } else if (point.value == U'\n') {
      out += "\\n";
    } else if (point.value == U'\t') {
      out += "\\t";
    } else if (point.value < 0x100) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(point.value));
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", static_cast<unsigned>(point.value));
    }
    text.remove_prefix(point.bytes);
  }
  return out;
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const int order = compare_digits(take_digits(a), take_digits(b));
      if (order != 0) return order < 0;
      continue;
    }
    if (a.front() != b.front()) return byte_at(a, 0) < byte_at(b, 0);
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  // Only leading zeros differ, if anything does.
  return whole_a < whole_b;
}

namespace {

// As bash, zsh and ksh read it: what a terminal would not show stays visible, and the same.
std::string quoted_with_escapes(std::string_view word) {
  std::string quoted = "$'";
  while (!word.empty()) {
    const CodePoint point = front_code_point(word);
    const bool is_shown = point.valid && !is_hidden_or_active(point.value);
    for (const char c : word.substr(0, point.bytes)) {
      if (c == '\'' || c == '\\') {
        quoted += '\\';
        quoted += c;
      } else if (is_shown) {
        quoted += c;
      } else {
        fmt::format_to(std::back_inserter(quoted), "\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    word.remove_prefix(point.bytes);
  }
  return quoted + "'";
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=+,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  if (printable(word) != word) return quoted_with_escapes(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::optional<std::int64_t> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::string name_list(std::span<const std::string> names) {
  constexpr std::size_t kMostListed = 20;
  const std::span<const std::string> shown = names.first(std::min(names.size(), kMostListed));
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (shown.size() < names.size()) text += translated(" and {} more", names.size() - shown.size());
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool replace_first(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return false;
  text.replace(at, from.size(), to);
  return true;
}

}  // namespace shardwright
