// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "cli/console.h"

namespace shardwright::cli {

/// Whether a page may be written there. Only another page is replaced, and only with `overwrite`: a
/// path that was meant for something else may be a file of a checkpoint. `flag` is for the message.
/// Errors: kTargetExists, those of reading.
[[nodiscard]] Status check_page_place(std::string_view flag, const std::string& path,
                                      bool overwrite);

/// Shows a file in the browser of $BROWSER, else in the desktop's; where there is none a message
/// says so.
void open_in_browser(const std::string& path, Console& console);

}  // namespace shardwright::cli
