// SPDX-License-Identifier: Apache-2.0
#include "io/spool_file.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fail.h"

namespace shardwright {
namespace {

std::string spool_folder() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/tmp";
}

}  // namespace

Result<std::unique_ptr<SpoolFile>> SpoolFile::create(std::string name) {
  std::string path = spool_folder() + "/shardwright-XXXXXX";
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return fail_errno(errno, fmt::format("{}: cannot make a temporary file", spool_folder()));
  }
  if (::unlink(path.c_str()) != 0) {
    return fail_errno(errno, fmt::format("{}: cannot unlink a temporary file", path));
  }
  return std::unique_ptr<SpoolFile>(new SpoolFile(std::move(fd), std::move(name)));
}

Status SpoolFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      return fail_errno(
          errno, fmt::format("{}: cannot write to a temporary file in {}", name_, spool_folder()));
    }
    size_ += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

Status SpoolFile::read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
  if (offset > size_ || buffer.size() > size_ - offset) {
    return fail(Code::kShortRead, "{}: found {} bytes, expected {} from {}", name_, size_,
                buffer.size(), offset);
  }
  while (!buffer.empty()) {
    const ssize_t done =
        ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return fail_errno(errno, fmt::format("{}: cannot read a temporary file", name_));
    }
    offset += static_cast<std::uint64_t>(done);
    buffer = buffer.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

}  // namespace shardwright
