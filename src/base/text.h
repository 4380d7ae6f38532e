// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright {

/// One step through UTF-8.
struct CodePoint {
  char32_t value = 0;     ///< meaningless where `valid` is false
  std::size_t bytes = 1;  ///< length in the text; 1 for a byte that begins no character
  bool valid = false;
};

/// The character at the front. Overlong forms, surrogates and values above U+10FFFF are not valid.
/// REQUIRES: text is not empty.
[[nodiscard]] CodePoint front_code_point(std::string_view text);

/// Columns that a terminal gives a text: 2 for East Asian wide characters, 0 for combining ones.
[[nodiscard]] int display_width(std::string_view text);

/// The text, cut to at most `columns` columns and ended with `…` where something is missing.
[[nodiscard]] std::string fit_width(std::string_view text, int columns);

/// The text with everything escaped that could act on a terminal or deceive its reader: control
/// characters, line ends, direction overrides, bytes that are no UTF-8.
[[nodiscard]] std::string printable(std::string_view text);

/// The word as a POSIX shell reads it back: in quotes unless every character is harmless. With
/// characters that printable() spells out it is `$'…'`, which bash, zsh and ksh read.
[[nodiscard]] std::string shell_quoted(std::string_view word);

/// Takes the digits off the front of the text; nullopt where there are none or too many.
[[nodiscard]] std::optional<std::int64_t> take_number(std::string_view& text);

/// The parts between the separators, of which there is at least one.
[[nodiscard]] std::vector<std::string_view> split_at(std::string_view text, char separator);

/// Replaces the first `from` in the text; false where there is none.
bool replace_first(std::string& text, std::string_view from, std::string_view to);

/// Whether the text ends as one of `endings` does.
template <typename Endings>
[[nodiscard]] bool ends_as_any(std::string_view text, const Endings& endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return text.ends_with(end); });
}

/// `a, b, c`, cut after twenty with the number of the rest.
[[nodiscard]] std::string name_list(std::span<const std::string> names);

/// Orders as people count: `layers.2` before `layers.10`. A strict weak order over all texts; only
/// equal texts are equivalent.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);

}  // namespace shardwright
