// SPDX-License-Identifier: Apache-2.0
#include "io/dirty_bytes.h"

#include <algorithm>

namespace shardwright {

std::optional<ByteRange> DirtyBytes::add(std::uint64_t offset, std::uint64_t length) {
  const std::scoped_lock lock(mutex_);
  const bool is_first = bytes_ == 0;
  begin_ = is_first ? offset : std::min(begin_, offset);
  end_ = is_first ? offset + length : std::max(end_, offset + length);
  bytes_ += length;
  if (bytes_ < kBatchBytes) return std::nullopt;
  bytes_ = 0;
  return ByteRange{begin_, end_ - begin_};
}

}  // namespace shardwright
