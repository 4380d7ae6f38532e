// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fail.h"
#include "io/beneath.h"
#include "io/file_link.h"
#include "io/folder_listing.h"
#include "io/local_file.h"
#include "io/named_directory.h"
#include "io/pending_call.h"
#include "io/remote_path.h"
#include "shardwright/storage.h"

namespace shardwright {
namespace {

class LocalDirectory final : public Directory {
 public:
  LocalDirectory(UniqueFd root, std::string name)
      : root_(std::move(root)), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    const std::string shown = full_name(path);
    const PendingCall pending("a call to open it", shown);
    const Parent parent = SW_TRY(parent_of(path));
    UniqueFd fd(::openat(parent.folder, parent.last.c_str(), kReadingFlags | O_NOFOLLOW));
    const int os_errno = fd.valid() ? 0 : errno;
    const NamePlace place{root_.get(), parent.folder, parent.last, shown};
    if (os_errno == ELOOP) fd = SW_TRY(open_link(place, kReadingFlags));
    if (!fd.valid()) return why_not_opened(place, os_errno);
    return make_readable(std::move(fd), place.shown);
  }

  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    SW_TRY(named(check_relative_path(path)));
    const std::string shown = full_name(path);
    const PendingCall pending("a call to make it", shown);
    const auto [folder_path, last] = split_last(path);
    const UniqueFd folder = SW_TRY(named(make_folders_beneath(root_.get(), folder_path)));
    const std::string leaf(last);
    UniqueFd fd(::openat(folder.get(), leaf.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd.valid() && errno == EEXIST) {
      return fail(Code::kTargetExists, "{}: found something there, expected to make a new file",
                  full_name(path));
    }
    if (!fd.valid()) return fail_errno(errno, translated("{}: cannot create", full_name(path)));
    auto file = make_writable(std::move(fd), full_name(path), size);
    if (!file) (void)::unlinkat(folder.get(), leaf.c_str(), 0);
    return file;
  }

  Result<std::unique_ptr<WritableFile>> reopen(std::string_view path, std::uint64_t size) override {
    SW_TRY(named(check_relative_path(path)));
    const std::string shown = full_name(path);
    const PendingCall pending("a call to open it", shown);
    const auto [folder_path, last] = split_last(path);
    const UniqueFd folder = SW_TRY(named(make_folders_beneath(root_.get(), folder_path)));
    // Several processes may come at once: all get the same file, and none takes it away again.
    UniqueFd fd(::openat(folder.get(), std::string(last).c_str(),
                         O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!fd.valid()) {
      return fail_errno(errno, translated("{}: cannot open for writing", full_name(path)));
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
      return fail_errno(errno, translated("{}: cannot look at it", full_name(path)));
    }
    // Through a second name of a file something else would be written on.
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        static_cast<std::uint64_t>(status.st_size) > size) {
      return fail(
          Code::kTargetExists,
          "{}: found something that was not made by this conversion, expected an unfinished "
          "file of at most {} bytes",
          full_name(path), size);
    }
    return make_writable(std::move(fd), full_name(path), size);
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    if (!path.empty()) SW_TRY(named(check_relative_path(path)));
    const std::string shown = full_name(path);
    const PendingCall pending("a call to list it", shown);
    const UniqueFd folder = SW_TRY(named(open_folder_beneath(root_.get(), path)));
    std::vector<DirectoryEntry> entries;
    for (const std::string& entry_name : SW_TRY(names_in(folder.get(), shown))) {
      entries.push_back(describe(folder.get(), path, entry_name));
    }
    return entries;
  }

  Result<FileVersion> version(std::string_view path) const override {
    const std::string shown = full_name(path);
    const PendingCall pending("a call to look at it", shown);
    const Parent parent = SW_TRY(parent_of(path));
    struct stat status{};
    if (::fstatat(parent.folder, parent.last.c_str(), &status, 0) != 0) {
      return fail_errno(errno, translated("{}: cannot look at it", full_name(path)));
    }
    return version_of(status);
  }

  bool exists(std::string_view path) const override {
    if (path.empty()) return true;
    if (!check_relative_path(path)) return false;
    const std::string shown = full_name(path);
    const PendingCall pending("a call to look for it", shown);
    const auto parent = parent_of(path);
    if (!parent) return parent.error().code != Code::kNotFound;
    struct stat status{};
    return ::fstatat(parent->folder, parent->last.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
  }

 private:
  // `opened` keeps `folder` open; of a name in the root it is empty, as that is open already.
  struct Parent {
    UniqueFd opened;
    int folder;
    std::string last;
  };

  Result<Parent> parent_of(std::string_view path) const {
    SW_TRY(named(check_relative_path(path)));
    const auto [folder_path, last] = split_last(path);
    if (folder_path.empty()) return Parent{UniqueFd(), root_.get(), std::string(last)};
    UniqueFd folder = SW_TRY(named(open_folder_beneath(root_.get(), folder_path)));
    const int number = folder.get();
    return Parent{std::move(folder), number, std::string(last)};
  }

  static std::unexpected<Error> why_not_opened(const NamePlace& place, int os_errno) {
    struct stat status{};
    // A socket can't be opened at all.
    if (os_errno == ENXIO && ::fstatat(place.folder, place.name.c_str(), &status, 0) == 0 &&
        !S_ISREG(status.st_mode)) {
      return not_a_file(status.st_mode, place.shown);
    }
    return fail_errno(os_errno, translated("{}: cannot open", place.shown));
  }

  DirectoryEntry describe(int folder, std::string_view folder_path,
                          const std::string& entry_name) const {
    const std::string path =
        folder_path.empty() ? entry_name : fmt::format("{}/{}", folder_path, entry_name);
    const NamePlace place{root_.get(), folder, entry_name, full_name(path)};
    DirectoryEntry entry{entry_name, false, 0};
    Status looked = look_at(place, path, entry);
    if (!looked) entry.problem = std::move(looked).error();
    return entry;
  }

  Status look_at(const NamePlace& place, const std::string& path, DirectoryEntry& entry) const {
    struct stat status{};
    if (::fstatat(place.folder, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail_errno(errno, translated("{}: cannot look at it", place.shown));
    }
    if (S_ISLNK(status.st_mode)) {
      struct stat target{};
      if (::fstatat(place.folder, place.name.c_str(), &target, 0) == 0 && S_ISDIR(target.st_mode)) {
        entry.is_directory = true;
        static_cast<void>(SW_TRY(named(open_folder_beneath(root_.get(), path))));
        return {};
      }
      const UniqueFd file = SW_TRY(open_link(place, O_PATH | O_CLOEXEC));
      if (::fstat(file.get(), &status) != 0) {
        return fail_errno(errno, translated("{}: cannot look at it", place.shown));
      }
    }
    entry.is_directory = S_ISDIR(status.st_mode);
    if (entry.is_directory) return {};
    if (!S_ISREG(status.st_mode)) return not_a_file(status.st_mode, place.shown);
    entry.size_bytes = static_cast<std::uint64_t>(status.st_size);
    return {};
  }

  std::string full_name(std::string_view path) const {
    if (path.empty()) return name_;
    return name_.ends_with('/') ? fmt::format("{}{}", name_, path)
                                : fmt::format("{}/{}", name_, path);
  }

  template <class T>
  Result<T> named(Result<T> result) const {
    if (!result) return std::unexpected(std::move(result).error().within(name_));
    return result;
  }

  UniqueFd root_;
  std::string name_;
};

}  // namespace

Result<std::unique_ptr<Directory>> open_local_directory(std::string_view path) {
  return open_local_directory_as(path, std::string(path));
}

Result<std::unique_ptr<Directory>> open_local_directory_as(std::string_view path,
                                                           std::string shown_name) {
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    return fail(Code::kNotFound, "found an empty path or one with a NUL byte, expected a folder");
  }
  UniqueFd root;
  int os_errno = 0;
  {
    const PendingCall pending("a call to open this folder", shown_name);
    root = UniqueFd(::open(std::string(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root.valid()) os_errno = errno;
  }
  if (!root.valid()) {
    auto error = fail_errno(os_errno, translated("{}: cannot open this folder", shown_name));
    if (os_errno == ENOENT) error.error().message += remote_hint(path);
    return error;
  }
  return std::make_unique<LocalDirectory>(std::move(root), std::move(shown_name));
}

Result<std::string> read_whole(const Directory& directory, std::string_view path,
                               std::uint64_t limit_bytes) {
  const auto file = SW_TRY(directory.open(path));
  return read_all(*file, limit_bytes);
}

}  // namespace shardwright
