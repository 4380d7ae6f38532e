// SPDX-License-Identifier: Apache-2.0
#include "remote/block_cache.h"

namespace shardwright {

BlockCache::Block BlockCache::find(const Key& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(key);
  if (found == blocks_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.block;
}

void BlockCache::put(const Key& key, Block block) {
  const std::scoped_lock lock(mutex_);
  const auto [place, is_new] = blocks_.try_emplace(key);
  if (!is_new) uses_.erase(place->second.use);
  uses_.push_front(key);
  place->second = {std::move(block), uses_.begin()};
  if (blocks_.size() <= kMostBlocks) return;
  blocks_.erase(uses_.back());
  uses_.pop_back();
}

}  // namespace shardwright
