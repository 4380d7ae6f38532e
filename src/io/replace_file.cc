// SPDX-License-Identifier: Apache-2.0
#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fail.h"
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

Status sync_folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return fail_errno(errno, folder);
  return {};
}

struct NewFile {
  UniqueFd fd;
  std::string path;
};

// The first of these names that is free: nothing is ever written over.
template <class NameOf>
Result<NewFile> create_first_free(const NameOf& name_of) {
  constexpr mode_t kMode = 0666;
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const std::string path = name_of(attempt);
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMode));
    if (fd.get() >= 0) return NewFile{std::move(fd), path};
    if (errno != EEXIST) return fail_errno(errno, path);
  }
  return fail(Code::kTargetExists, "{}: found this and {} more like it; remove some", name_of(0),
              kMostTries - 1);
}

}  // namespace

Status replace_file(const std::string& path, std::string_view bytes) {
  NewFile file = SW_TRY(create_first_free(
      [&](int attempt) { return fmt::format("{}.partial-{}-{}", path, ::getpid(), attempt); }));
  struct stat old{};
  // The new file may be read and written by those who could read and write the old one.
  if (::stat(path.c_str(), &old) == 0) static_cast<void>(::fchmod(file.fd.get(), old.st_mode));
  Status status = write_all(file.fd.get(), file.path, bytes);
  if (status && ::rename(file.path.c_str(), path.c_str()) != 0) status = fail_errno(errno, path);
  if (!status) {
    ::unlink(file.path.c_str());
    return status;
  }
  const Status synced = sync_folder_of(path);
  if (synced) return {};
  return fail(synced.error().code,
              "{}; the new file {} is in place but may not outlive a power failure",
              synced.error().message, path);
}

Result<std::string> write_backup(const std::string& path, std::string_view bytes) {
  NewFile file = SW_TRY(create_first_free([&](int attempt) {
    return attempt == 0 ? path + ".bak" : fmt::format("{}.bak{}", path, attempt);
  }));
  Status status = write_all(file.fd.get(), file.path, bytes);
  if (status) status = sync_folder_of(path);
  if (!status) {
    ::unlink(file.path.c_str());
    return std::unexpected(std::move(status).error());
  }
  return file.path;
}

}  // namespace shardwright
