// SPDX-License-Identifier: Apache-2.0
#include "io/named_file.h"

#include <fcntl.h>

#include <cerrno>

#include "base/fail.h"
#include "io/local_file.h"

namespace shardwright {

Result<std::unique_ptr<ReadableFile>> open_named_file(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return fail(Code::kNotFound, "an empty path or one with a NUL byte names no file");
  }
  UniqueFd fd(::open(path.c_str(), kReadingFlags));
  if (!fd.valid()) return fail_errno(errno, fmt::format("{}: cannot open", path));
  return make_readable(std::move(fd), path);
}

Result<std::string> read_named_file(const std::string& path, std::uint64_t limit_bytes) {
  const std::unique_ptr<ReadableFile> file = SW_TRY(open_named_file(path));
  return read_all(*file, limit_bytes);
}

}  // namespace shardwright
