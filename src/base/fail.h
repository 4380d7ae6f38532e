// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <expected>
#include <utility>

#include "shardwright/error.h"

namespace shardwright {

/// Builds the error branch of a Result: `return fail(Code::kLimit, "{} bytes, limit {}", n, max);`
template <class... Args>
[[nodiscard]] std::unexpected<Error> fail(Code code, fmt::format_string<Args...> format,
                                          Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), 0});
}

/// The same with errno's text appended; picks kNotFound, kPermission or kDiskFull over kIo where
/// errno says so.
[[nodiscard]] std::unexpected<Error> fail_errno(int os_errno, std::string message);

}  // namespace shardwright
