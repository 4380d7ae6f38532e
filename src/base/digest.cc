// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <xxhash.h>
// Replaces the functions by ones that choose the widest instructions of the processor.
#ifdef SW_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>
#endif

#include <cstdint>
#include <cstring>
#include <new>

namespace shardwright {
namespace {

DigestBytes bytes_of(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  DigestBytes bytes;
  std::memcpy(bytes.data(), canonical.digest, bytes.size());
  return bytes;
}

// Of a hex digit; 16 of what is none.
std::uint8_t digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<std::uint8_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<std::uint8_t>(digit - 'a' + 10);
  return 16;
}

}  // namespace

std::string digest_text(const DigestBytes& digest) {
  std::string text;
  text.reserve(kDigestDigits);
  for (const std::byte byte : digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::optional<DigestBytes> digest_from_text(std::string_view text) {
  if (text.size() != kDigestDigits) return std::nullopt;
  DigestBytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t high = digit_value(text[2 * i]);
    const std::uint8_t low = digit_value(text[2 * i + 1]);
    if (high > 15 || low > 15) return std::nullopt;
    bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return bytes;
}

DigestBytes digest_bytes_of(std::span<const std::byte> bytes) {
  return bytes_of(XXH3_128bits(bytes.data(), bytes.size()));
}

Digest::Digest() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Digest::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Digest::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Digest::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Digest::text() const { return digest_text(bytes()); }

DigestBytes Digest::bytes() const { return bytes_of(XXH3_128bits_digest(state_.get())); }

}  // namespace shardwright
