// SPDX-License-Identifier: Apache-2.0
#include "io/spool_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fail.h"
#include "io/retries.h"

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
    return fail_errno(errno, translated("{}: cannot make a temporary file", spool_folder()));
  }
  if (::unlink(path.c_str()) != 0) {
    return fail_errno(errno, translated("{}: cannot unlink a temporary file", path));
  }
  return std::unique_ptr<SpoolFile>(new SpoolFile(std::move(fd), std::move(name)));
}

Status SpoolFile::check_room(std::uint64_t bytes) {
  constexpr std::uint64_t kLeftToOthers = 16;
  struct statvfs disk{};
  if (::statvfs(spool_folder().c_str(), &disk) != 0) {
    return fail_errno(errno, translated("{}: cannot tell the free space", spool_folder()));
  }
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  if (bytes <= free - free / kLeftToOthers) return {};
  return fail(
      Code::kDiskSpace,
      "{}: {} bytes are free, too few for {} bytes of decoded items; set TMPDIR to a folder "
      "with more room, or save the checkpoint again without stream extensions",
      spool_folder(), free, bytes);
}

Status SpoolFile::append(std::span<const std::byte> bytes) {
  SW_TRY(write_at(size_, bytes));
  size_ += bytes.size();
  return {};
}

Status SpoolFile::resize(std::uint64_t bytes) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    return fail_errno(errno, translated("{}: cannot make a temporary file of {} bytes in {}", name_,
                                        bytes, spool_folder()));
  }
  size_ = bytes;
  return {};
}

Status SpoolFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const Transfer written = transfer(bytes.size(), [&](std::size_t done) {
    return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                    static_cast<off_t>(offset + done));
  });
  if (written.done == bytes.size()) return {};
  return fail_errno(
      written.ended ? EIO : written.os_errno,
      translated("{}: cannot write to a temporary file in {}", name_, spool_folder()));
}

void SpoolFile::forget(std::uint64_t offset, std::uint64_t length) const {
  (void)::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(offset), static_cast<off_t>(length));
}

Status SpoolFile::read_at(std::uint64_t offset, std::span<std::byte> buffer) const {
  if (offset > size_ || buffer.size() > size_ - offset) {
    return fail(Code::kShortRead, "{}: found {} bytes, expected {} from {}", name_, size_,
                buffer.size(), offset);
  }
  const Transfer read = transfer(buffer.size(), [&](std::size_t done) {
    return ::pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                   static_cast<off_t>(offset + done));
  });
  if (read.done == buffer.size()) return {};
  return fail_errno(read.ended ? EIO : read.os_errno,
                    translated("{}: cannot read a temporary file", name_));
}

}  // namespace shardwright
