// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// A file open for reading. Positional only, so every method is safe for concurrent use.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Size in bytes when the file was opened.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `buffer` from `offset` or fails: kShortRead when the file ends before (it was cut, or
  /// shrank since it was opened), kIo otherwise.
  [[nodiscard]] virtual Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const = 0;
  /// The path for messages.
  [[nodiscard]] virtual const std::string& name() const = 0;
};

/// A new file of known size. write_at is safe for concurrent use; the others are not.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  [[nodiscard]] virtual Status write_at(std::uint64_t offset,
                                        std::span<const std::byte> bytes) const = 0;
  /// Writes the pieces one after another, starting at `offset`.
  [[nodiscard]] virtual Status write_at(
      std::uint64_t offset, std::span<const std::span<const std::byte>> pieces) const = 0;
  /// Starts writing [offset, offset+length) to the device without waiting for it.
  virtual void start_writeback(std::uint64_t offset, std::uint64_t length) const = 0;
  /// Makes the contents durable.
  [[nodiscard]] virtual Status sync() = 0;
};

struct DirectoryEntry {
  std::string name;  ///< relative to the listed directory
  bool is_directory = false;
  std::uint64_t size_bytes = 0;
};

/// A directory as a capability. Paths often come from inside files (an index, `.metadata`), so they
/// cannot leave it: `..`, `.`, empty names, absolute paths and NUL are refused with kPathEscapes,
/// and so is a folder that is a link out of the directory. Links that the user's own directory
/// holds are followed in one case: for reading, the last name of a path may be a link to a regular
/// file anywhere (a Hugging Face cache consists of them). Nothing is ever written through a link.
class Directory {
 public:
  virtual ~Directory() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const = 0;
  /// Creates `path` (and its parent folders) with `size` bytes reserved. Error: kTargetExists.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                                     std::uint64_t size) = 0;
  /// Entries of one folder ("" is the root), sorted by name. Not recursive.
  [[nodiscard]] virtual Result<std::vector<DirectoryEntry>> list(std::string_view path) const = 0;
  /// Whether a file or folder exists.
  [[nodiscard]] virtual bool exists(std::string_view path) const = 0;
  /// The path for messages.
  [[nodiscard]] virtual const std::string& name() const = 0;
};

/// Opens a directory of the local file system. Error: kNotFound.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_local_directory(std::string_view path);

/// A whole small file. Error: kLimit when it is larger than `limit_bytes`.
[[nodiscard]] Result<std::string> read_whole(const Directory& directory, std::string_view path,
                                             std::uint64_t limit_bytes);

}  // namespace shardwright
