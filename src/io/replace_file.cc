// SPDX-License-Identifier: Apache-2.0
#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
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

// Signals that end the program wait until it is through: what it made would stay without a word.
class SignalsHeld {
 public:
  SignalsHeld() noexcept {
    sigset_t held;
    ::sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held, signal);
    ::pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// A file that goes again, also where memory runs out, unless it is kept.
class NewFile {
 public:
  // The first of these names that is free: nothing is ever written over. `shown`: in messages.
  template <class NameOf>
  static Result<NewFile> create(const NameOf& name_of, const std::string& shown) {
    constexpr mode_t kMode = 0666;
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
      std::string path = name_of(attempt);
      UniqueFd fd(
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
      if (fd.get() >= 0) return NewFile(std::move(fd), std::move(path));
      if (errno != EEXIST) return fail_errno(errno, shown);
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

// What is to take the place of `path`, empty yet.
Result<NewFile> make_beside(const std::string& path) {
  const auto name_of = [&](int attempt) {
    return fmt::format("{}.partial-{}-{}", path, ::getpid(), attempt);
  };
  return NewFile::create(name_of, path);
}

}  // namespace

Status check_replaceable(const std::string& path) {
  const SignalsHeld held;
  SW_TRY(make_beside(path));
  return {};
}

Status replace_file(const std::string& path, std::string_view bytes) {
  const SignalsHeld held;
  NewFile file = SW_TRY(make_beside(path));
  const std::string folder = folder_of(path);
  struct stat old{};
  // The new file may be read and written by those who could read and write the old one.
  if (::stat(path.c_str(), &old) == 0) static_cast<void>(::fchmod(file.fd(), old.st_mode));
  SW_TRY(write_all(file.fd(), path, bytes));
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
  const SignalsHeld held;
  const auto name_of = [&](int attempt) {
    return attempt == 0 ? original + ".bak" : fmt::format("{}.bak{}", original, attempt);
  };
  NewFile file = SW_TRY(NewFile::create(name_of, original + ".bak"));
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
