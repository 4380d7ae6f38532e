// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/console_options.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

/// The help's heading over the flags of add_console().
inline constexpr const char* kConsoleGroup = "Every command";

/// The flags that every command has.
void add_console(CLI::App& app, ConsoleOptions& options);

}  // namespace shardwright::cli
