// SPDX-License-Identifier: Apache-2.0
#include "io/read_pages.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace shardwright {
namespace {

// As long as the longest pages, and aligned with them: half of one can't be given back.
constexpr std::uint64_t kPageBlockBytes = std::uint64_t{4} << 20;
constexpr std::uint32_t kNotOurs = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool is_memory_short() {
  struct sysinfo info{};
  return ::sysinfo(&info) == 0 && info.freeram < info.totalram / 8;
}

ReadPages::ReadPages(const ReadableFile& file, bool (*is_short)())
    : size_(file.size()), is_short_(is_short) {
  if (file.is_open()) ask_at_first(file);
}

// All of it is others' where nobody tells.
void ReadPages::ask_at_first(const ReadableFile& file) {
  cached_at_first_ = file.cached_bytes(0, size_).value_or(size_);
}

void ReadPages::begin(const ReadableFile& file) {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(has_begun_, true)) return;
  if (!cached_at_first_) ask_at_first(file);
  if (*cached_at_first_ >= size_) return;
  unread_.resize(static_cast<std::size_t>((size_ + kPageBlockBytes - 1) / kPageBlockBytes));
  for (std::size_t block = 0; block < unread_.size(); ++block) {
    const std::uint64_t bytes = bytes_of_block(block);
    const bool is_ours =
        *cached_at_first_ == 0 || file.cached_bytes(block * kPageBlockBytes, bytes) == 0;
    unread_[block] = is_ours ? static_cast<std::uint32_t>(bytes) : kNotOurs;
  }
}

void ReadPages::add(const ReadableFile& file, std::uint64_t offset, std::uint64_t length) {
  const std::scoped_lock lock(mutex_);
  if (unread_.empty()) return;
  const std::uint64_t end = std::min(offset + length, size_);
  bool is_complete = false;
  while (offset < end) {
    const auto block = static_cast<std::size_t>(offset / kPageBlockBytes);
    const std::uint64_t step = std::min(end, (block + 1) * kPageBlockBytes) - offset;
    offset += step;
    std::uint32_t& unread = unread_[block];
    if (unread == kNotOurs || unread == 0) continue;
    unread -= static_cast<std::uint32_t>(std::min<std::uint64_t>(step, unread));
    if (unread > 0) continue;
    read_.push_back(block);
    is_complete = true;
  }
  if (!is_complete || !is_short_()) return;
  give_back(file, read_);
  read_.clear();
}

void ReadPages::finish(const ReadableFile& file) {
  const std::scoped_lock lock(mutex_);
  if (unread_.empty() || !is_short_()) return;
  for (std::size_t block = 0; block < unread_.size(); ++block) {
    const std::uint32_t unread = unread_[block];
    if (unread == kNotOurs || unread == 0 || unread == bytes_of_block(block)) continue;
    read_.push_back(block);
  }
  give_back(file, read_);
  read_.clear();
}

std::uint64_t ReadPages::bytes_of_block(std::size_t block) const {
  return std::min(kPageBlockBytes, size_ - block * kPageBlockBytes);
}

void ReadPages::give_back(const ReadableFile& file, const std::vector<std::size_t>& blocks) {
  for (const std::size_t block : blocks) {
    file.give_back(block * kPageBlockBytes, bytes_of_block(block));
    unread_[block] = kNotOurs;
  }
}

}  // namespace shardwright
