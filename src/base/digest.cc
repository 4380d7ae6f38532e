// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>
// Replaces the functions by ones that choose the widest instructions of the processor.
#ifdef SW_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>
#endif

#include <new>

namespace shardwright {

Digest::Digest() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Digest::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Digest::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Digest::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

std::string Digest::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace shardwright
