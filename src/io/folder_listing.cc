// SPDX-License-Identifier: Apache-2.0
#include "io/folder_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "io/unique_fd.h"

namespace shardwright {
namespace {

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

std::unexpected<Error> cannot_list(int os_errno, std::string_view shown) {
  return fail_errno(os_errno, translated("{}: cannot list", shown));
}

FolderEntry folder_entry(std::string name, const struct stat& status) {
  FolderEntry entry{std::move(name)};
  if (S_ISDIR(status.st_mode)) entry.kind = EntryKind::kFolder;
  if (S_ISREG(status.st_mode)) {
    entry.kind = EntryKind::kFile;
    entry.bytes = static_cast<std::uint64_t>(status.st_size);
  }
  return entry;
}

bool any_name(std::string_view) { return true; }

Result<std::vector<FolderEntry>> list_opened(const std::string& path, int flags,
                                             bool (*is_wanted)(std::string_view) = any_name) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (!folder.valid()) return cannot_list(errno, path);
  std::vector<FolderEntry> entries;
  for (std::string& name : SW_TRY(names_in(folder.get(), path))) {
    if (!is_wanted(name)) continue;
    struct stat status{};
    if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      entries.push_back(folder_entry(std::move(name), status));
    } else if (errno != ENOENT) {
      return fail_errno(errno, translated("{}/{}: cannot look at it", path, name));
    }
  }
  return entries;
}

}  // namespace

Result<std::vector<std::string>> names_in(int folder, std::string_view shown) {
  const int duplicate = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return cannot_list(errno, shown);
  const std::unique_ptr<DIR, CloseStream> stream(::fdopendir(duplicate));
  if (!stream) {
    const int os_errno = errno;
    ::close(duplicate);
    return cannot_list(os_errno, shown);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return cannot_list(errno, shown);
  std::ranges::sort(names);
  return names;
}

Result<std::vector<FolderEntry>> list_folder(const std::string& path) {
  return list_opened(path, 0);
}

Result<std::vector<FolderEntry>> list_folder(const std::string& path,
                                             bool (*is_wanted)(std::string_view)) {
  return list_opened(path, 0, is_wanted);
}

Result<FolderTree> read_tree(const std::string& path) {
  FolderTree tree{{path}};
  for (std::size_t i = 0; i < tree.folders.size(); ++i) {
    const std::string folder = tree.folders[i];
    for (const FolderEntry& entry : SW_TRY(list_opened(folder, O_NOFOLLOW))) {
      tree.bytes += entry.bytes;
      if (entry.kind == EntryKind::kFolder) {
        tree.folders.push_back(fmt::format("{}/{}", folder, entry.name));
      }
    }
  }
  return tree;
}

}  // namespace shardwright
