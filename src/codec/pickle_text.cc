// SPDX-License-Identifier: Apache-2.0
#include "codec/pickle_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace shardwright::pickle {
namespace {

// CPython refuses more digits too: conversion is quadratic.
constexpr std::size_t kMostDigits = 4300;

std::uint8_t byte_at(std::string_view text, std::size_t index) {
  return static_cast<std::uint8_t>(text[index]);
}

// Length of the UTF-8 sequence at `at`, and its code point; 0 when malformed.
std::size_t read_utf8(std::string_view text, std::size_t at, char32_t& code_point) {
  const std::uint8_t lead = byte_at(text, at);
  if (lead < 0x80) {
    code_point = lead;
    return 1;
  }
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() - at < length) return 0;
  code_point = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const std::uint8_t next = byte_at(text, at + i);
    if ((next & 0xc0) != 0x80) return 0;
    code_point = (code_point << 6) | (next & 0x3fu);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  return code_point < kSmallest[length] || code_point > 0x10ffff ? 0 : length;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<char32_t> read_hex(std::string_view digits, std::size_t count) {
  if (digits.size() < count) return std::nullopt;
  char32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = hex_value(digits[i]);
    if (digit < 0) return std::nullopt;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  return value;
}

// One backslash sequence of a Python 2 literal; returns how many characters it took, 0 on error.
std::size_t unescape_one(std::string_view text, std::string& out) {
  constexpr std::string_view kNames = "\\'\"abfnrtv";
  constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
  if (text.empty()) return 0;
  if (const std::size_t found = kNames.find(text[0]); found != std::string_view::npos) {
    out += kValues[found];
    return 1;
  }
  if (text[0] == 'x') {
    const auto value = read_hex(text.substr(1), 2);
    if (!value) return 0;
    out += static_cast<char>(*value);
    return 3;
  }
  std::size_t used = 0;
  unsigned value = 0;
  while (used < 3 && used < text.size() && text[used] >= '0' && text[used] <= '7') {
    value = value * 8 + static_cast<unsigned>(text[used++] - '0');
  }
  if (used == 0 || value > 0xff) return 0;
  out += static_cast<char>(value);
  return used;
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    char32_t code_point = 0;
    const std::size_t length = read_utf8(text, at, code_point);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t bits) { out += static_cast<char>(bits); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3f));
    put(0x80 | ((code_point >> 6) & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

std::optional<std::string> latin1_bytes(std::string_view utf8) {
  std::string bytes;
  bytes.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    char32_t code_point = 0;
    const std::size_t length = read_utf8(utf8, at, code_point);
    if (length == 0 || code_point > 0xff) return std::nullopt;
    bytes += static_cast<char>(code_point);
    at += length;
  }
  return bytes;
}

std::string latin1_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (char c : bytes) append_utf8(text, static_cast<std::uint8_t>(c));
  return text;
}

std::optional<std::string> unescape_unicode(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const std::string_view rest = line.substr(at);
    const std::size_t digits = rest.starts_with("\\u") ? 4 : rest.starts_with("\\U") ? 8 : 0;
    if (digits == 0) {
      append_utf8(text, byte_at(line, at));
      ++at;
      continue;
    }
    const auto code_point = read_hex(rest.substr(2), digits);
    if (!code_point || *code_point > 0x10ffff) return std::nullopt;
    append_utf8(text, *code_point);
    at += 2 + digits;
  }
  return text;
}

std::optional<std::string> unescape_literal(std::string_view line) {
  if (line.size() < 2 || line.front() != line.back()) return std::nullopt;
  if (line.front() != '\'' && line.front() != '"') return std::nullopt;
  const std::string_view body = line.substr(1, line.size() - 2);
  std::string bytes;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      bytes += body[at++];
      continue;
    }
    const std::size_t used = unescape_one(body.substr(at + 1), bytes);
    if (used == 0) return std::nullopt;
    at += 1 + used;
  }
  return bytes;
}

std::optional<std::string> decimal_to_little_endian(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  std::string bytes;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    unsigned carry = static_cast<unsigned>(c - '0');
    for (char& byte : bytes) {
      carry += static_cast<std::uint8_t>(byte) * 10u;
      byte = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) bytes += static_cast<char>(carry);
  }
  bytes += '\0';  // room for the sign
  if (negative) {
    unsigned carry = 1;
    for (char& byte : bytes) {
      carry += static_cast<std::uint8_t>(~static_cast<std::uint8_t>(byte));
      byte = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
  }
  return bytes;
}

}  // namespace shardwright::pickle
