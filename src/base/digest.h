// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace shardwright {

/// An XXH3-128, its most significant byte first.
using DigestBytes = std::array<std::byte, 16>;

/// Hex digits of one.
inline constexpr std::size_t kDigestDigits = 32;

/// Those digits, and the digest that they are: lower-case ones only.
[[nodiscard]] std::string digest_text(const DigestBytes& digest);
[[nodiscard]] std::optional<DigestBytes> digest_from_text(std::string_view text);

/// Of bytes that are all there.
[[nodiscard]] DigestBytes digest_bytes_of(std::span<const std::byte> bytes);

/// XXH3-128 (seed 0) of bytes that arrive in pieces.
class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// 32 hex digits, the most significant first.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] DigestBytes bytes() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace shardwright
