// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/fail.h"

namespace shardwright {

/// kZeroLayout for a value that all files of a save have alike and `file` has another than `first`.
template <class T>
[[nodiscard]] Status check_alike(std::string_view what, const T& found, const std::string& file,
                                 const T& expected, const std::string& first) {
  if (found == expected) return {};
  return fail(Code::kZeroLayout,
              "{}: found {} {}, expected {} as in {}; keep the files of one save", file, what,
              found, expected, first);
}

}  // namespace shardwright
