// SPDX-License-Identifier: Apache-2.0
#include "io/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "io/pending_call.h"
#include "io/unique_fd.h"

namespace shardwright {
namespace {

/// Of folders in folders, each of which takes a part of the stack and a descriptor. One that lies
/// deeper is moved up first.
constexpr int kDeepest = 200;
constexpr int kMostNames = 1000;              // that are tried for what is moved up
constexpr std::size_t kEntriesAtOnce = 2048;  // bytes; a name has 255 at most

struct Removal {
  PendingCall* pending = nullptr;
  int top = -1;  // the outermost folder
  int moved = 0;

  int remove_entry(int parent, const char* name, int deeper) noexcept;

 private:
  int remove_entries(int folder, int deeper, int& gone) noexcept;
  int move_up(int parent, const char* name) noexcept;
};

// The outermost folder is read again as long as something goes from it: so this one is found.
int Removal::move_up(int parent, const char* name) noexcept {
  for (int tries = 0; tries < kMostNames; ++tries) {
    std::array<char, 32> place{};
    (void)::snprintf(place.data(), place.size(), ".deep-%d", moved++);
    if (::renameat2(parent, name, top, place.data(), RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) break;
  }
  return errno;
}

/// One pass over the entries: how many went, and why others did not.
int Removal::remove_entries(int folder, int deeper, int& gone) noexcept {
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

int Removal::remove_entry(int parent, const char* name, int deeper) noexcept {
  if (pending != nullptr) pending->renew();
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return 0;
  const int why = errno;
  if (why != EISDIR && why != EPERM) return why;
  const UniqueFd folder(
      ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!folder.valid()) return errno == ENOTDIR || errno == ELOOP ? why : errno;
  if (deeper == 0) return move_up(parent, name);
  if (top < 0) top = folder.get();
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

int remove_tree(const char* path, PendingCall* pending) noexcept {
  return Removal{pending}.remove_entry(AT_FDCWD, path, kDeepest);
}

}  // namespace shardwright
