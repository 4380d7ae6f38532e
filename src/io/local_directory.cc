// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/fail.h"
#include "io/beneath.h"
#include "io/local_file.h"
#include "shardwright/storage.h"

namespace shardwright {
namespace {

class LocalDirectory final : public Directory {
 public:
  LocalDirectory(UniqueFd root, std::string name)
      : root_(std::move(root)), name_(std::move(name)) {}

  const std::string& name() const override { return name_; }

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    const Parent parent = SW_TRY(parent_of(path));
    // O_NONBLOCK: opening a FIFO must not wait for a writer; make_readable then refuses it.
    UniqueFd fd(::openat(parent.folder.get(), parent.last.c_str(),
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd.valid()) return fail_errno(errno, fmt::format("{}: cannot open", full_name(path)));
    return make_readable(std::move(fd), full_name(path));
  }

  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    SW_TRY(named(check_relative_path(path)));
    const auto [folder_path, last] = split_last(path);
    const UniqueFd folder = SW_TRY(named(make_folders_beneath(root_.get(), folder_path)));
    const std::string leaf(last);
    UniqueFd fd(::openat(folder.get(), leaf.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!fd.valid() && errno == EEXIST) {
      return fail(Code::kTargetExists, "{}: found something there, expected to make a new file",
                  full_name(path));
    }
    if (!fd.valid()) return fail_errno(errno, fmt::format("{}: cannot create", full_name(path)));
    auto file = make_writable(std::move(fd), full_name(path), size);
    if (!file) (void)::unlinkat(folder.get(), leaf.c_str(), 0);
    return file;
  }

  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    if (!path.empty()) SW_TRY(named(check_relative_path(path)));
    const UniqueFd folder = SW_TRY(named(open_folder_beneath(root_.get(), path)));
    const int duplicate = ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0);
    DIR* stream = duplicate >= 0 ? ::fdopendir(duplicate) : nullptr;
    if (stream == nullptr) {
      const int os_errno = errno;
      if (duplicate >= 0) ::close(duplicate);
      return fail_errno(os_errno, fmt::format("{}: cannot list", full_name(path)));
    }
    std::vector<DirectoryEntry> entries;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view entry_name(entry->d_name);
      if (entry_name != "." && entry_name != "..") {
        entries.push_back(describe(folder.get(), entry->d_name));
      }
      errno = 0;
    }
    const int reading_error = errno;
    ::closedir(stream);
    if (reading_error != 0) {
      return fail_errno(reading_error, fmt::format("{}: cannot list", full_name(path)));
    }
    std::ranges::sort(entries, {}, &DirectoryEntry::name);
    return entries;
  }

  bool exists(std::string_view path) const override {
    if (path.empty()) return true;
    const auto parent = parent_of(path);
    struct stat status{};
    return parent && ::fstatat(parent->folder.get(), parent->last.c_str(), &status, 0) == 0 &&
           (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  }

 private:
  struct Parent {
    UniqueFd folder;
    std::string last;
  };

  Result<Parent> parent_of(std::string_view path) const {
    SW_TRY(named(check_relative_path(path)));
    const auto [folder_path, last] = split_last(path);
    UniqueFd folder = SW_TRY(named(open_folder_beneath(root_.get(), folder_path)));
    return Parent{std::move(folder), std::string(last)};
  }

  /// A dangling link or a special file is listed with size 0; opening it gives the reason.
  static DirectoryEntry describe(int folder, const char* entry_name) {
    DirectoryEntry entry{entry_name, false, 0};
    struct stat status{};
    if (::fstatat(folder, entry_name, &status, 0) != 0) return entry;
    entry.is_directory = S_ISDIR(status.st_mode);
    if (S_ISREG(status.st_mode)) entry.size_bytes = static_cast<std::uint64_t>(status.st_size);
    return entry;
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
  if (path.empty() || path.find('\0') != std::string_view::npos) {
    return fail(Code::kNotFound, "found an empty path or one with a NUL byte, expected a folder");
  }
  std::string name(path);
  UniqueFd root(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno(errno, fmt::format("{}: cannot open this folder", name));
  return std::make_unique<LocalDirectory>(std::move(root), std::move(name));
}

Result<std::string> read_whole(const Directory& directory, std::string_view path,
                               std::uint64_t limit_bytes) {
  const auto file = SW_TRY(directory.open(path));
  if (file->size() > limit_bytes) {
    return fail(Code::kLimit, "{}: found {} bytes, expected at most {}", file->name(), file->size(),
                limit_bytes);
  }
  std::string contents(file->size(), '\0');
  SW_TRY(file->read_at(0, std::as_writable_bytes(std::span(contents))));
  return contents;
}

}  // namespace shardwright
