// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/endian.h"
#include "codec/zip_format.h"

namespace shardwright::zip {

/// REQUIRES: position + sizeof(T) <= bytes.size().
template <class T>
T field(std::string_view bytes, std::size_t position) {
  return load_le<T>(as_bytes(bytes).data() + position);
}

/// Calls `visit(id, contents)` for each extra field. False unless the fields fill the area exactly:
/// a wrong length of the area would move the payload that comes behind it.
template <class Visit>
bool for_each_extra(std::string_view extra, Visit visit) {
  while (!extra.empty()) {
    if (extra.size() < kExtraHeaderBytes) return false;
    const auto id = field<std::uint16_t>(extra, 0);
    const std::size_t length = field<std::uint16_t>(extra, 2);
    extra.remove_prefix(kExtraHeaderBytes);
    if (length > extra.size()) return false;
    if (!visit(id, extra.substr(0, length))) return false;
    extra.remove_prefix(length);
  }
  return true;
}

/// Whether a 32-bit field says the same as the one of 64 bits, or that it is to be looked at.
inline bool fits_or_is_in_64(std::uint64_t value32, std::uint64_t sentinel, std::uint64_t value64) {
  return value32 == sentinel || value32 == value64;
}

}  // namespace shardwright::zip
