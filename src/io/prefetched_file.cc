// SPDX-License-Identifier: Apache-2.0
#include "io/prefetched_file.h"

#include <cstring>

namespace shardwright {

Status PrefetchedFile::fetch(std::uint64_t offset, std::uint64_t length) {
  offset_ = offset;
  bytes_.resize(static_cast<std::size_t>(length));
  Status status = inner_.read_at(offset, std::as_writable_bytes(std::span(bytes_)));
  if (!status) bytes_.clear();
  return status;
}

Status PrefetchedFile::read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
  const bool inside = offset >= offset_ && offset - offset_ <= bytes_.size() &&
                      buffer.size() <= bytes_.size() - (offset - offset_);
  if (!inside) return inner_.read_at(offset, buffer);
  if (!buffer.empty()) {
    std::memcpy(buffer.data(), bytes_.data() + (offset - offset_), buffer.size());
  }
  return {};
}

}  // namespace shardwright
