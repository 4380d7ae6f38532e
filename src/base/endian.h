// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace shardwright {

static_assert(std::endian::native == std::endian::little,
              "file headers are little-endian and are read by memcpy");

/// Reads a little-endian integer. REQUIRES: at least sizeof(T) bytes.
template <std::integral T>
[[nodiscard]] T load_le(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <std::integral T>
void store_le(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

template <std::integral T>
void append_le(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

/// A string's characters as bytes, for the I/O calls; borrows from `text`.
[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace shardwright
