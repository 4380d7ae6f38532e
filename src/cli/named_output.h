// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright::cli {

/// Whether a file that `flag` names can be written in one step, before the work that it is to tell
/// of: nothing lies there, or what `is_ours` knows by its text. A path that was meant for another
/// flag may be one of the checkpoint's own files, which stay. True: there is one to replace.
/// Errors: kTargetExists, kUsage for a URL; those of check_replaceable.
[[nodiscard]] Result<bool> check_named_output(std::string_view flag, const std::string& path,
                                              const std::function<bool(std::string_view)>& is_ours);

}  // namespace shardwright::cli
