// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// Whether so little memory is free that what is read next takes the place of what others have in
/// the page cache.
[[nodiscard]] bool is_memory_short();

/// What reading a file brought into the page cache. It is given back where memory is short, and
/// with it nothing that was there before: that is somebody else's. For any thread.
class ReadPages {
 public:
  /// REQUIRES: nothing was read of `file` yet. One that is not open is asked about in begin().
  explicit ReadPages(const ReadableFile& file, bool (*is_short)() = is_memory_short);

  /// Finds out what is whose, once. To be called before a range is read for the last time: most
  /// commands read heads only and need not ask about each part of a file. Where some of it was
  /// there at first, what was read before this call is taken for others' too. `file`: the same, it
  /// may have been opened again; so for the others.
  void begin(const ReadableFile& file);
  /// A range was read for the last time. REQUIRES: begin().
  void add(const ReadableFile& file, std::uint64_t offset, std::uint64_t length);
  /// Nothing of it will be read any more.
  void finish(const ReadableFile& file);

 private:
  void ask_at_first(const ReadableFile& file);
  [[nodiscard]] std::uint64_t bytes_of_block(std::size_t block) const;
  void give_back(const ReadableFile& file, const std::vector<std::size_t>& blocks);

  std::uint64_t size_;
  std::optional<std::uint64_t> cached_at_first_;  // nothing: it was not open yet
  bool (*is_short_)();
  std::mutex mutex_;  // of what follows
  bool has_begun_ = false;
  std::vector<std::uint32_t> unread_;  // bytes of each block; kNotOurs: leave it; empty: leave all
  std::vector<std::size_t> read_;      // blocks that can be given back
};

}  // namespace shardwright
