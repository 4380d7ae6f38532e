// SPDX-License-Identifier: Apache-2.0
#include "remote/block_cache.h"

#include <algorithm>
#include <cstring>

namespace shardwright {

BlockCache::Found BlockCache::find(const std::string& file, std::uint64_t first,
                                   std::uint64_t needed, std::uint64_t count) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = blocks_.find(KeyView(file, first));
    if (found == blocks_.end()) break;
    if (found->second.block != nullptr) {
      uses_.splice(uses_.begin(), uses_, found->second.use);
      return {found->second.block, 0};
    }
    came_.wait(lock);
  }
  const std::uint64_t end = std::min(first + std::max(run_from({file, first}), needed), count);
  std::uint64_t claimed = 0;
  while (first + claimed < end && !blocks_.contains(KeyView(file, first + claimed))) ++claimed;
  std::uint64_t made = 0;
  try {
    for (; made < claimed; ++made) blocks_[{file, first + made}].run = claimed;
  } catch (...) {
    erase_unheld(file, first, made);
    throw;
  }
  return {nullptr, claimed};
}

std::uint64_t BlockCache::run_from(KeyView key) const {
  const auto behind = blocks_.lower_bound(key);
  if (behind == blocks_.begin()) return kLeastRun;
  const auto& [before, entry] = *std::prev(behind);
  if (before.first != key.first || key.second - before.second - 1 > kNearBlocks) return kLeastRun;
  return std::clamp(2 * entry.run, kLeastRun, kMostRun);
}

void BlockCache::put(const std::string& file, std::uint64_t first,
                     std::span<const std::byte> bytes) {
  {
    const std::scoped_lock lock(mutex_);
    for (std::uint64_t number = first; !bytes.empty(); ++number) {
      const std::size_t length = std::min<std::size_t>(kBlockBytes, bytes.size());
      hold({file, number}, bytes.first(length));
      bytes = bytes.subspan(length);
      while (held_bytes_ > most_bytes_) forget_oldest();
    }
  }
  came_.notify_all();
}

void BlockCache::hold(Key key, std::span<const std::byte> bytes) {
  auto block = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  std::list<const Key*> use(1);
  const auto place = blocks_.try_emplace(std::move(key)).first;
  Entry& entry = place->second;
  if (entry.block != nullptr) {
    held_bytes_ -= entry.block->size();
    uses_.erase(entry.use);
  }
  entry.block = std::move(block);
  held_bytes_ += bytes.size();
  use.front() = &place->first;
  uses_.splice(uses_.begin(), use);
  entry.use = uses_.begin();
}

void BlockCache::forget_oldest() {
  const auto oldest = blocks_.find(*uses_.back());
  held_bytes_ -= oldest->second.block->size();
  uses_.pop_back();
  blocks_.erase(oldest);
}

void BlockCache::drop(const std::string& file, std::uint64_t first,
                      std::uint64_t claimed) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    erase_unheld(file, first, claimed);
  }
  came_.notify_all();
}

void BlockCache::erase_unheld(std::string_view file, std::uint64_t first,
                              std::uint64_t count) noexcept {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto found = blocks_.find(KeyView(file, first + i));
    if (found != blocks_.end() && found->second.block == nullptr) blocks_.erase(found);
  }
}

bool BlockCache::copy(const std::string& file, std::uint64_t first, std::span<std::byte> buffer) {
  const std::scoped_lock lock(mutex_);
  for (std::uint64_t number = first; !buffer.empty(); ++number) {
    const auto found = blocks_.find(KeyView(file, number));
    if (found == blocks_.end() || found->second.block == nullptr) return false;
    const std::size_t count = std::min(buffer.size(), found->second.block->size());
    std::memcpy(buffer.data(), found->second.block->data(), count);
    buffer = buffer.subspan(count);
  }
  return true;
}

}  // namespace shardwright
