// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/args.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

// The arguments of the commands that compare and prove.

void add_verify(CLI::App& app, VerifyCommand& command);
void add_diff(CLI::App& app, DiffCommand& command);
void add_hash(CLI::App& app, HashCommand& command);
void add_show(CLI::App& app, ShowCommand& command);
void add_report(CLI::App& app, ReportCommand& command);
[[nodiscard]] Result<Command> to_report(const CLI::App& app, ReportCommand& command);

}  // namespace shardwright::cli
