// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/diagnose.h"

namespace shardwright::cli {

/// What stands before a message: `error[SW0307]`; in Chinese the label says what the code means
/// too.
[[nodiscard]] std::string code_label(std::string_view kind, Code code, Language language);

}  // namespace shardwright::cli
