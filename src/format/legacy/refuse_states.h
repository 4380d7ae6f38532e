// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/fail.h"

namespace shardwright {

/// States of a rank's optimizer that can't be taken: kOptimizerUnsupported, with the way out.
template <class... Args>
[[nodiscard]] std::unexpected<Error> refuse_states(fmt::format_string<Args...> format,
                                                   Args&&... args) {
  return fail(Code::kOptimizerUnsupported, "optimizer: {}; convert without it (--optimizer drop)",
              translated(format, std::forward<Args>(args)...));
}

}  // namespace shardwright
