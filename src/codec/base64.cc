// SPDX-License-Identifier: Apache-2.0
#include "codec/base64.h"

#include <openssl/evp.h>

#include <algorithm>

namespace shardwright {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 30;  // OpenSSL counts in int

bool is_digit64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '/';
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // a NUL is written behind it
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  text.pop_back();
  return text;
}

// OpenSSL passes over white space at both ends, and counts padding as bytes.
std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > kMostText) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (!std::ranges::all_of(text.substr(0, text.size() - padding), is_digit64)) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()));
  if (decoded < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(decoded) - padding);
  return bytes;
}

}  // namespace shardwright
