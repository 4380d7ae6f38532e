// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"

#include <cerrno>
#include <system_error>

namespace shardwright {
namespace {

Code code_of(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermission;
    case ENOSPC:
    case EDQUOT:
      return Code::kDiskFull;
    case EMFILE:
    case ENFILE:
      return Code::kTooManyFiles;
    default:
      return Code::kIo;
  }
}

}  // namespace

std::unexpected<Error> vfail(Code code, fmt::string_view format, fmt::format_args args) {
  return std::unexpected(Error{code, vtranslated(format, args), 0});
}

std::unexpected<Error> fail_errno(int os_errno, std::string message) {
  std::string reason = in_language(std::generic_category().message(os_errno));
  if (os_errno == EFBIG) {
    reason +=
        translated(" for this file system or for the limit on files (ulimit -f); raise the limit");
  }
  if (os_errno == EMFILE) {
    reason += translated("; raise the limit on open files, the hard one too (ulimit -Hn)");
  }
  return std::unexpected(
      Error{code_of(os_errno), fmt::format("{}: {}", message, reason), os_errno});
}

// Short enough to need no memory of its own.
std::unexpected<Error> fail_out_of_memory() {
  return std::unexpected(Error{Code::kOutOfMemory, translated("out of memory"), ENOMEM});
}

}  // namespace shardwright
