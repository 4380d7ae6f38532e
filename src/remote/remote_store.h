// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// A file of a remote store as it was when it was looked at.
struct RemoteObject {
  std::uint64_t size = 0;
  std::string tag;  ///< ETag with its quotes, else what tells the file from itself after a change

  [[nodiscard]] FileVersion version() const;
};

/// A server's files below a root, as RemoteDirectory makes a directory of them. Paths have passed
/// check_relative_path. Thread-safe.
class RemoteStore {
 public:
  virtual ~RemoteStore() = default;
  /// What the user calls the root.
  [[nodiscard]] virtual const std::string& name() const = 0;
  /// As Directory::list, in any order; asks the server each time. Error: kNotFound.
  [[nodiscard]] virtual Result<std::vector<DirectoryEntry>> list(std::string_view folder) const = 0;
  /// What a file is, or was when its folder was listed: read() tells where it changed since.
  [[nodiscard]] virtual Result<RemoteObject> find(std::string_view path) const {
    return look(path);
  }
  /// What a file is now. Error: kNotFound.
  [[nodiscard]] virtual Result<RemoteObject> look(std::string_view path) const = 0;
  /// Fills `buffer`, which lies in the file. Error: kSourceChanged where it is not `object` now.
  [[nodiscard]] virtual Status read(std::string_view path, const RemoteObject& object,
                                    std::uint64_t offset, std::span<std::byte> buffer) const = 0;
  /// Whether list() told all that is in a folder. Else find() may find other files there.
  [[nodiscard]] virtual bool tells_all(std::string_view /*folder*/) const { return true; }
};

}  // namespace shardwright
