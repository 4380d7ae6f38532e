// SPDX-License-Identifier: Apache-2.0
#include "remote/byte_ranges.h"

#include <algorithm>
#include <iterator>

namespace shardwright {

ByteRange ByteRanges::add(ByteRange range) {
  std::uint64_t begin = range.offset;
  std::uint64_t end = range.offset + range.length;
  auto next = ends_.upper_bound(begin);
  if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
  while (next != ends_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(begin, end);
  return {begin, end - begin};
}

bool ByteRanges::meets(ByteRange range) const {
  const auto next = ends_.lower_bound(range.offset + range.length);
  return next != ends_.begin() && std::prev(next)->second > range.offset;
}

}  // namespace shardwright
