// SPDX-License-Identifier: Apache-2.0
#include "io/named_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/fail.h"
#include "io/local_file.h"
#include "io/pending_call.h"

namespace shardwright {

Result<std::unique_ptr<ReadableFile>> open_named_file(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return fail(Code::kNotFound, "an empty path or one with a NUL byte names no file");
  }
  const PendingCall pending("a call to open it", path);
  UniqueFd fd(::open(path.c_str(), kReadingFlags));
  if (!fd.valid()) return fail_errno(errno, translated("{}: cannot open", path));
  return make_readable(std::move(fd), path);
}

Result<FileVersion> version_of_named_file(const std::string& path) {
  const PendingCall pending("a call to look at it", path);
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return version_of(status);
  return fail_errno(errno, translated("{}: cannot look at it", path));
}

Result<std::string> read_named_file(const std::string& path, std::uint64_t limit_bytes) {
  const std::unique_ptr<ReadableFile> file = SW_TRY(open_named_file(path));
  return read_all(*file, limit_bytes);
}

}  // namespace shardwright
