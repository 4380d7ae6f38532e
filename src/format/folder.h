// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// `folder/name`; either may be empty, and then is the other alone.
[[nodiscard]] std::string path_in(std::string_view folder, std::string_view name);

/// A folder that may hold a checkpoint, as formats look at it: its listing, the listings of the
/// folders in it, and small files. Borrows the directory that it lies in.
class Folder {
 public:
  /// `path` is relative to the directory, "" for itself. Errors: those of list().
  [[nodiscard]] static Result<Folder> open(const Directory& directory, std::string path);

  [[nodiscard]] const std::vector<DirectoryEntry>& entries() const { return entries_; }
  /// The entry of that name that is no folder; null if there is none. It may be unreadable.
  [[nodiscard]] const DirectoryEntry* file(std::string_view name) const;
  /// Likewise a folder, or what can't be seen to be one.
  [[nodiscard]] const DirectoryEntry* folder(std::string_view name) const;
  [[nodiscard]] bool has_file(std::string_view name) const { return file(name) != nullptr; }
  [[nodiscard]] const DirectoryEntry* first(
      const std::function<bool(const DirectoryEntry&)>& matches) const;

  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(std::string_view name) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  /// Whether something is there for sure: exists() is true where a server can't tell.
  [[nodiscard]] bool has(std::string_view path) const;
  /// The whole of a small file. Error: kLimit above 1 MiB, and those of reading.
  [[nodiscard]] Result<std::string> read(std::string_view name) const;

 private:
  Folder(const Directory& directory, std::string path, std::vector<DirectoryEntry> entries)
      : directory_(&directory), path_(std::move(path)), entries_(std::move(entries)) {}
  [[nodiscard]] std::string path_of(std::string_view name) const;

  const Directory* directory_;
  std::string path_;
  std::vector<DirectoryEntry> entries_;
};

/// What metadata.json names as Megatron-Core's backend: nullopt without the file, "" where it names
/// none. Errors: those of reading.
[[nodiscard]] Result<std::optional<std::string>> sharded_backend(const Folder& folder);

}  // namespace shardwright
