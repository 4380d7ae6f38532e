// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// Bytes of files that one process has read, for others which would read the same to have them
/// without. Files go by the name that all give them. Safe for concurrent use.
class KnownBytes {
 public:
  /// What is kept of all files. Of one file at most half of what the others leave: a long read,
  /// which each may as well repeat, does not take the place of all headers.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

  explicit KnownBytes(std::uint64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  /// A file was opened.
  void add_file(const std::string& name, const FileVersion& version);
  /// Some of it was read. REQUIRES: add_file().
  void add(const std::string& name, std::uint64_t offset, std::span<const std::byte> bytes);

  /// What a file was; nothing of one that was not opened. Only size and time of change are told, as
  /// other machines number files and devices otherwise.
  [[nodiscard]] std::optional<FileVersion> find(const std::string& name) const;
  /// Fills `buffer`, if all of it is known.
  [[nodiscard]] bool copy(const std::string& name, std::uint64_t offset,
                          std::span<std::byte> buffer) const;

  /// Knows nothing from now on.
  void forget();

  /// For add_message() in another process.
  [[nodiscard]] std::string message() const;
  /// Adds what a message tells. Error: kInternal for what is none.
  [[nodiscard]] Status add_message(std::string_view message);

 private:
  struct File {
    std::uint64_t size_bytes = 0;
    std::int64_t modified_ns = 0;
    std::uint64_t known_bytes = 0;
    std::map<std::uint64_t, std::string> parts;  // by offset; none overlap
  };

  // REQUIRES: the lock.
  void add_part(File& file, std::uint64_t offset, std::span<const std::byte> bytes);

  std::uint64_t most_bytes_;
  std::atomic<bool> is_closed_{false};
  mutable std::mutex mutex_;  // of what follows
  std::map<std::string, File, std::less<>> files_;
  std::uint64_t known_bytes_ = 0;  // of all
};

}  // namespace shardwright
