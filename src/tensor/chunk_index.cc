// SPDX-License-Identifier: Apache-2.0
#include "tensor/chunk_index.h"

#include <algorithm>
#include <compare>

namespace shardwright {
namespace {

// Below this many candidates a scan beats further searching.
constexpr std::size_t kScanLimit = 8;

}  // namespace

ChunkIndex::ChunkIndex(const ChunkList& chunks)
    : chunks_(&chunks), longest_(Dims::filled(chunks.axes(), 0)) {
  order_.reserve(chunks.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Box box = chunks.box(i);
    if (box.is_empty()) continue;
    order_.push_back(static_cast<std::uint32_t>(i));
    for (int axis = 0; axis < box.axes(); ++axis) {
      longest_[axis] = std::max(longest_[axis], box.shape[axis]);
    }
  }
  const auto before = [&chunks](std::uint32_t a, std::uint32_t b) {
    const auto left = chunks.origin(a);
    const auto right = chunks.origin(b);
    const auto order = std::lexicographical_compare_three_way(left.begin(), left.end(),
                                                              right.begin(), right.end());
    return order != 0 ? order < 0 : a < b;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), before)) {
    std::sort(order_.begin(), order_.end(), before);
  }
}

void ChunkIndex::find(const Box& box, std::vector<std::uint32_t>& found) const {
  if (!box.is_empty()) find_from(box, 0, 0, order_.size(), found);
}

void ChunkIndex::find_from(const Box& box, int axis, std::size_t begin, std::size_t end,
                           std::vector<std::uint32_t>& found) const {
  if (end - begin <= kScanLimit || axis == box.axes()) {
    for (std::size_t i = begin; i < end; ++i) {
      if (intersect(chunks_->box(order_[i]), box)) found.push_back(order_[i]);
    }
    return;
  }
  const auto origin_at = [&](std::uint32_t chunk) {
    return chunks_->origin(chunk)[static_cast<std::size_t>(axis)];
  };
  const auto first = order_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = order_.begin() + static_cast<std::ptrdiff_t>(end);
  // A chunk that starts before the box still reaches it if it is long enough.
  const std::int64_t earliest = box.origin[axis] - longest_[axis] + 1;
  auto group = std::lower_bound(first, last, earliest, [&](std::uint32_t chunk, std::int64_t at) {
    return origin_at(chunk) < at;
  });
  while (group != last && origin_at(*group) < box.end(axis)) {
    const std::int64_t origin = origin_at(*group);
    const auto next = std::upper_bound(
        group, last, origin,
        [&](std::int64_t at, std::uint32_t chunk) { return at < origin_at(chunk); });
    find_from(box, axis + 1, static_cast<std::size_t>(group - order_.begin()),
              static_cast<std::size_t>(next - order_.begin()), found);
    group = next;
  }
}

}  // namespace shardwright
