// SPDX-License-Identifier: Apache-2.0
#include "io/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "io/unique_fd.h"

namespace shardwright {
namespace {

/// Of folders in folders, each of which takes a part of the stack and a descriptor.
constexpr int kDeepest = 200;
constexpr std::size_t kEntriesAtOnce = 2048;  // bytes; a name has 255 at most

int remove_entry(int parent, const char* name, int deeper) noexcept;

/// One pass over the entries: how many went, and why others did not.
int remove_entries(int folder, int deeper, int& gone) noexcept {
  std::array<char, kEntriesAtOnce> buffer{};
  int first = 0;
  if (::lseek(folder, 0, SEEK_SET) < 0) return errno;
  for (;;) {
    const ssize_t size = ::getdents64(folder, buffer.data(), buffer.size());
    if (size < 0) return errno;
    if (size == 0) return first;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const char* name = buffer.data() + at + offsetof(dirent64, d_name);
      unsigned short length = 0;
      std::memcpy(&length, buffer.data() + at + offsetof(dirent64, d_reclen), sizeof length);
      at += length;
      if (name == std::string_view(".") || name == std::string_view("..")) continue;
      const int failed = remove_entry(folder, name, deeper);
      if (failed == 0) ++gone;
      if (first == 0) first = failed;
    }
  }
}

int remove_entry(int parent, const char* name, int deeper) noexcept {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  const int why = errno;
  if (why != EISDIR && why != EPERM) return why;
  if (deeper == 0) return ELOOP;
  const UniqueFd folder(
      ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!folder.valid()) return errno == ENOTDIR || errno == ELOOP ? why : errno;
  // A file system may pass over entries while others go: until a pass finds none.
  int failed = 0;
  for (int gone = 1; gone > 0 && failed == 0;) {
    gone = 0;
    failed = remove_entries(folder.get(), deeper - 1, gone);
  }
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return failed != 0 ? failed : errno;
}

}  // namespace

int remove_tree(const char* path) noexcept { return remove_entry(AT_FDCWD, path, kDeepest); }

}  // namespace shardwright
