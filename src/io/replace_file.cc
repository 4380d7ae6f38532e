// SPDX-License-Identifier: Apache-2.0
#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fail.h"
#include "io/in_place.h"
#include "io/retries.h"
#include "io/unique_fd.h"

namespace shardwright {
namespace {

constexpr int kMostTries = 1000;

Status write_all(int fd, const std::string& path, std::string_view bytes) {
  const Transfer written = transfer(bytes.size(), [&](std::size_t done) {
    return ::write(fd, bytes.data() + done, bytes.size() - done);
  });
  if (written.done != bytes.size()) return fail_errno(written.ended ? EIO : written.os_errno, path);
  if (::fsync(fd) != 0) return fail_errno(errno, path);
  return {};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Status sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return fail_errno(errno, folder);
  return {};
}

// A file that goes again, also where memory runs out, unless it is kept.
class NewFile {
 public:
  // The first of these names that is free: nothing is ever written over.
  template <class NameOf>
  static Result<NewFile> create(const NameOf& name_of) {
    constexpr mode_t kMode = 0666;
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
      std::string path = name_of(attempt);
      UniqueFd fd(
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
      if (fd.get() >= 0) return NewFile(std::move(fd), std::move(path));
      if (errno != EEXIST) return fail_errno(errno, path);
    }
    return fail(Code::kTargetExists, "{}: found this and {} more like it; remove some", name_of(0),
                kMostTries - 1);
  }
  ~NewFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  NewFile(NewFile&& other) noexcept
      : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}
  NewFile& operator=(NewFile&&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  std::string keep() { return std::exchange(path_, {}); }

 private:
  NewFile(UniqueFd fd, std::string path) noexcept : fd_(std::move(fd)), path_(std::move(path)) {}

  UniqueFd fd_;
  std::string path_;
};

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes) {
  NewFile file = SW_TRY(NewFile::create(
      [&](int attempt) { return fmt::format("{}.partial-{}-{}", path, ::getpid(), attempt); }));
  const std::string folder = folder_of(path);
  struct stat old{};
  // The new file may be read and written by those who could read and write the old one.
  if (::stat(path.c_str(), &old) == 0) static_cast<void>(::fchmod(file.fd(), old.st_mode));
  SW_TRY(write_all(file.fd(), file.path(), bytes));
  if (::rename(file.path().c_str(), path.c_str()) != 0) return fail_errno(errno, path);
  static_cast<void>(file.keep());
  note_output_in_place();
  const Status synced = sync_folder(folder);
  if (synced) return {};
  return fail(synced.error().code,
              "{}; the new file {} is in place but may not outlive a power failure",
              synced.error().message, path);
}

Result<Backup> Backup::write(const std::string& original, std::string_view bytes) {
  std::string kept_original = original;
  NewFile file = SW_TRY(NewFile::create([&](int attempt) {
    return attempt == 0 ? original + ".bak" : fmt::format("{}.bak{}", original, attempt);
  }));
  SW_TRY(write_all(file.fd(), file.path(), bytes));
  SW_TRY(sync_folder(folder_of(original)));
  struct stat now{};
  if (::lstat(original.c_str(), &now) != 0) return fail_errno(errno, original);
  return Backup(std::move(kept_original), now.st_dev, now.st_ino, file.keep());
}

Backup::~Backup() {
  if (!path_.empty() && is_needless()) ::unlink(path_.c_str());
}

Backup::Backup(Backup&& other) noexcept
    : original_(std::move(other.original_)),
      device_(other.device_),
      inode_(other.inode_),
      path_(std::exchange(other.path_, {})) {}

bool Backup::is_needless() const {
  struct stat now{};
  return ::lstat(original_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

}  // namespace shardwright
