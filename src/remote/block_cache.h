// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwright {

/// The blocks of files that were read last: headers are read in small steps, each of which would be
/// a request. Of what lies alone a little is fetched; whoever reads on gets twice as much each
/// time. No block is fetched by two at once. Thread-safe.
class BlockCache {
 public:
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{4} << 10;
  static constexpr std::uint64_t kLeastRun = 4;  ///< blocks that are fetched at once
  static constexpr std::uint64_t kMostRun = 64;
  /// A gap of so many blocks is read on through: that takes less time than a request.
  static constexpr std::uint64_t kNearBlocks = 16;
  static constexpr std::uint64_t kUsualBytes = std::uint64_t{16} << 20;

  using Block = std::shared_ptr<const std::vector<std::byte>>;

  explicit BlockCache(std::uint64_t most_bytes = kUsualBytes) : most_bytes_(most_bytes) {}

  /// What find() gives: a block, or how many from it on the caller is to fetch.
  struct Found {
    Block block;
    std::uint64_t claimed = 0;
  };
  /// The block `first` of a file of `count` blocks, of which `needed` from there on will be asked
  /// for. Waits for one that another thread fetches. What is claimed has to be put or dropped, by
  /// its first block.
  [[nodiscard]] Found find(const std::string& file, std::uint64_t first, std::uint64_t needed,
                           std::uint64_t count);
  /// Holds the blocks that `bytes` are in place of those that were unused for longest.
  void put(const std::string& file, std::uint64_t first, std::span<const std::byte> bytes);
  /// Gives up what of the claimed was not put.
  void drop(const std::string& file, std::uint64_t first, std::uint64_t claimed) noexcept;
  /// Fills `buffer` from the begin of a block on, if all of it is held.
  [[nodiscard]] bool copy(const std::string& file, std::uint64_t first,
                          std::span<std::byte> buffer);

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // a file, and the number of a block
  using KeyView = std::pair<std::string_view, std::uint64_t>;
  struct Earlier {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const { return a < b; }
  };
  struct Entry {
    Block block;                          // null: somebody fetches it
    std::uint64_t run = 0;                // blocks that were fetched with it
    std::list<const Key*>::iterator use;  // of one that is held
  };

  // REQUIRES of all: the lock.
  [[nodiscard]] std::uint64_t run_from(KeyView key) const;
  void hold(Key key, std::span<const std::byte> bytes);
  void forget_oldest();
  void erase_unheld(std::string_view file, std::uint64_t first, std::uint64_t count) noexcept;

  const std::uint64_t most_bytes_;
  std::mutex mutex_;  // of what follows
  std::condition_variable came_;
  std::map<Key, Entry, Earlier> blocks_;
  std::list<const Key*> uses_;  // latest first
  std::uint64_t held_bytes_ = 0;
};

}  // namespace shardwright
