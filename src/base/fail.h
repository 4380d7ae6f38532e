// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <expected>
#include <utility>

#include "base/translated.h"
#include "shardwright/error.h"

namespace shardwright {

/// What `fail` does, whatever the types of the arguments.
[[nodiscard]] std::unexpected<Error> vfail(Code code, fmt::string_view format,
                                           fmt::format_args args);

/// Builds the error branch of a Result, in the language spoken now (see `translated`):
/// `return fail(Code::kLimit, "{} bytes, limit {}", n, max);`
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(Code code, fmt::format_string<Args...> format,
                                          Args&&... args) {
  return vfail(code, format, fmt::make_format_args(args...));
}

/// The same with errno's text appended; picks kNotFound, kPermission or kDiskFull over kIo where
/// errno says so.
[[nodiscard]] std::unexpected<Error> fail_errno(int os_errno, std::string message);

/// What a thread reports in place of std::bad_alloc (kOutOfMemory).
[[nodiscard]] std::unexpected<Error> fail_out_of_memory();

}  // namespace shardwright
