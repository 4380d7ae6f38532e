// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardwright::pickle {

/// The text forms inside pickles. All pure; each answers nothing for malformed input.

/// UTF-8 as Python's surrogatepass handler reads it: lone surrogates are fine, overlong forms and
/// values above U+10FFFF are not.
[[nodiscard]] bool is_utf8(std::string_view text);
/// Appends a code point (surrogates too) as UTF-8.
void append_utf8(std::string& out, char32_t code_point);
/// The bytes whose Latin-1 reading is this UTF-8 text: protocol 2 writes bytes so.
[[nodiscard]] std::optional<std::string> latin1_bytes(std::string_view utf8);
/// The inverse of latin1_bytes.
[[nodiscard]] std::string latin1_text(std::string_view bytes);
/// UNICODE's argument (raw-unicode-escape) as UTF-8.
[[nodiscard]] std::optional<std::string> unescape_unicode(std::string_view line);
/// STRING's argument, a quoted Python 2 literal, as bytes.
[[nodiscard]] std::optional<std::string> unescape_literal(std::string_view line);
/// A decimal number of any size as little-endian two's complement.
[[nodiscard]] std::optional<std::string> decimal_to_little_endian(std::string_view digits);

}  // namespace shardwright::pickle
