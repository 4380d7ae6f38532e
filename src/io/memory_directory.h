// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// A file whose bytes are in memory, for bytes that were already read (an archive inside a value).
[[nodiscard]] std::unique_ptr<ReadableFile> make_memory_file(std::string name,
                                                             std::string contents);

/// A directory in memory with the rules of a local one; what tests run on. Thread-safe.
class MemoryDirectory final : public Directory {
 public:
  explicit MemoryDirectory(std::string name = "memory") : name_(std::move(name)) {}

  /// Makes or replaces a file. Readers that are open keep the old contents.
  void put(std::string_view path, std::string contents);
  /// The bytes of a file; empty if it is missing.
  [[nodiscard]] std::string contents(std::string_view path) const;
  /// All files, sorted.
  [[nodiscard]] std::vector<std::string> paths() const;
  /// Changes a byte of a file for those who have it open too, or only its times (`position` behind
  /// its end), as another process could.
  void touch(std::string_view path, std::size_t position, char byte = '\0');
  /// Cuts a file for those who have it open too, as another process could.
  void truncate(std::string_view path, std::size_t size);

  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::unique_ptr<WritableFile>> reopen(std::string_view path,
                                                             std::uint64_t size) override;
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view path) const override;
  [[nodiscard]] Result<FileVersion> version(std::string_view path) const override;
  [[nodiscard]] bool exists(std::string_view path) const override;
  [[nodiscard]] const std::string& name() const override { return name_; }

 private:
  [[nodiscard]] FileVersion version_of(std::string_view path, std::uint64_t size) const;
  [[nodiscard]] std::string full_name(std::string_view path) const;

  std::string name_;
  mutable std::mutex mutex_;
  // Shared with open files; a buffer's address never changes, so disjoint writes need no lock.
  std::map<std::string, std::shared_ptr<std::string>, std::less<>> files_;
  std::map<std::string, std::int64_t, std::less<>> changes_;  // counted, of those that had any
};

}  // namespace shardwright
