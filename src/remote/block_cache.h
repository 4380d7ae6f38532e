// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace shardwright {

/// The blocks of files that were read last: headers are read in small steps, each of which would be
/// a request. Thread-safe.
class BlockCache {
 public:
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{256} << 10;
  static constexpr std::size_t kMostBlocks = 64;

  using Block = std::shared_ptr<const std::vector<std::byte>>;
  using Key = std::pair<std::string, std::uint64_t>;  ///< a file, and the number of a block

  /// Null where it is not held.
  [[nodiscard]] Block find(const Key& key);
  /// Holds it in place of the one that was unused for longest.
  void put(const Key& key, Block block);

 private:
  struct Entry {
    Block block;
    std::list<Key>::iterator use;
  };

  std::mutex mutex_;
  std::map<Key, Entry> blocks_;
  std::list<Key> uses_;  // latest first
};

}  // namespace shardwright
