// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// What tells a file from another, and from itself after a change: equal as long as nobody writes,
/// touches or replaces it. What a file system doesn't tell is 0.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t number = 0;  ///< of the file on the device (inode)
  std::uint64_t size_bytes = 0;
  /// Since 1970, of the contents; where they have no time (what a server calls by a tag, what is
  /// made in memory) a number that is another for others.
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  ///< of the contents or of what is known about the file
  /// False where of the contents nothing but their size is told, as by a server that gives neither
  /// ETag nor date: equal versions may be of different files then.
  bool tells_contents = true;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

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
  /// What it was when it was opened.
  [[nodiscard]] virtual FileVersion version() const { return {.size_bytes = size()}; }
  /// Whether it is open; false as long as nothing was asked for that is not known without that.
  [[nodiscard]] virtual bool is_open() const { return true; }
  /// Whether a server is asked for each read: one long read is then cheaper than many short ones.
  [[nodiscard]] virtual bool is_remote() const { return false; }
  /// How much of [offset, offset+length) is in the page cache; nothing where that is not told.
  [[nodiscard]] virtual std::optional<std::uint64_t> cached_bytes(std::uint64_t /*offset*/,
                                                                  std::uint64_t /*length*/) const {
    return std::nullopt;
  }
  /// Lets the page cache forget [offset, offset+length), for everybody. Only a hint.
  virtual void give_back(std::uint64_t /*offset*/, std::uint64_t /*length*/) const {}
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
  std::uint64_t size_bytes = 0;  ///< of a regular file
  /// Why this is neither a file nor a folder that can be read (a dangling link, a link to outside,
  /// a FIFO, a failing look): Code::kNotAFile, kPathEscapes or that of the failure.
  std::optional<Error> problem = std::nullopt;
};

/// A directory as a capability. Paths often come from inside files (an index, `.metadata`), so they
/// cannot leave it: `..`, `.`, empty names, absolute paths and NUL are refused with kPathEscapes,
/// and so is a link that leads out of the directory. Reading follows links that stay inside, and
/// `../../blobs/<hash>` of a Hugging Face cache (one `../` more for each folder in the snapshot).
/// What is neither a file nor a folder is kNotAFile. Nothing is ever written through a link.
class Directory {
 public:
  virtual ~Directory() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const = 0;
  /// The same to find out what a file is: check_unchanged() does not ask for it to stay so.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableFile>> look_into(
      std::string_view path) const {
    return open(path);
  }
  /// Creates `path` (and its parent folders) with `size` bytes reserved. Error: kTargetExists.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> create(std::string_view path,
                                                                     std::uint64_t size) = 0;
  /// Opens for writing what create() made with the same size, and makes it where it is missing.
  /// Error: kTargetExists for what is not such a file, or where that is not supported.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> reopen(std::string_view path,
                                                                     std::uint64_t size) {
    return create(path, size);
  }
  /// Entries of one folder ("" is the root), sorted by name. Not recursive.
  [[nodiscard]] virtual Result<std::vector<DirectoryEntry>> list(std::string_view path) const = 0;
  /// Whether list() of the root tells all that is there. A web server may show no list: then only
  /// files of known names were asked for.
  [[nodiscard]] virtual bool lists_all() const { return true; }
  /// What a file is now; opens nothing where that can be told otherwise. Errors: those of open().
  [[nodiscard]] virtual Result<FileVersion> version(std::string_view path) const {
    const auto file = open(path);
    if (!file) return std::unexpected(file.error());
    return (*file)->version();
  }
  /// kSourceChanged unless each file that was opened here is still what it was then. Only a
  /// directory that remembers its files has anything to compare.
  [[nodiscard]] virtual Status check_unchanged() const { return {}; }
  /// Whether something is there, even what can't be read: opening it tells why, silence would not.
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
