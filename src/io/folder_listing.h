// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

// std::filesystem's iterators end the process where memory runs out: they allocate in functions
// that may not throw. These throw std::bad_alloc, as everything does.

enum class EntryKind : std::uint8_t { kFile, kFolder, kOther };

struct FolderEntry {
  std::string name;
  EntryKind kind = EntryKind::kOther;  ///< a link is another thing, wherever it leads
  std::uint64_t bytes = 0;             ///< of a file
};

/// The names in an open folder, sorted. `shown`: what messages call it. Errors: kIo.
[[nodiscard]] Result<std::vector<std::string>> names_in(int folder, std::string_view shown);

/// What lies in a folder, by name. What vanishes meanwhile is left out. Errors: kNotFound,
/// kPermission, kIo.
[[nodiscard]] Result<std::vector<FolderEntry>> list_folder(const std::string& path);

/// The same of what has one of the wanted names. The others are not looked at: a shared folder may
/// hold thousands, and each look asks the server.
[[nodiscard]] Result<std::vector<FolderEntry>> list_folder(const std::string& path,
                                                           bool (*is_wanted)(std::string_view));

/// A folder with all that is in it; links are not followed.
struct FolderTree {
  std::vector<std::string> folders;  ///< paths; itself is the first, each lies behind its parent
  std::uint64_t bytes = 0;           ///< in its files
};

/// Errors: those of list_folder, for any of its folders.
[[nodiscard]] Result<FolderTree> read_tree(const std::string& path);

}  // namespace shardwright
