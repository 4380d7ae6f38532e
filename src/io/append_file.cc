// SPDX-License-Identifier: Apache-2.0
#include "io/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/fail.h"
#include "io/pending_call.h"
#include "io/retries.h"

namespace shardwright {

Result<std::unique_ptr<AppendFile>> AppendFile::open(std::string path) {
  const PendingCall pending("a call to open it", path);
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd.valid()) return fail_errno(errno, translated("{}: cannot open for writing", path));
  return std::unique_ptr<AppendFile>(new AppendFile(std::move(fd), std::move(path)));
}

Status AppendFile::append(std::span<const std::byte> bytes) const {
  const PendingCall pending("a write", path_);
  const Transfer result = transfer(bytes.size(), [&](std::size_t done) {
    return ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
  });
  if (result.done == bytes.size()) return {};
  return fail_errno(result.ended ? EIO : result.os_errno, translated("{}: cannot write", path_));
}

Status AppendFile::truncate(std::uint64_t size) const {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) == 0) return {};
  return fail_errno(errno, translated("{}: cannot cut it", path_));
}

Status AppendFile::sync() const {
  const PendingCall pending("a sync", path_);
  if (::fsync(fd_.get()) == 0) return {};
  return fail_errno(errno, translated("{}: cannot make the contents durable", path_));
}

bool AppendFile::lock() const {
  const PendingCall pending("a call to lock it", path_);
  return ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace shardwright
