// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/args.h"
#include "cli/console.h"

namespace shardwright::cli {

// Each command prints its result on the console and returns the exit status; an error is the
// caller's to report.

[[nodiscard]] Result<int> run(const InspectCommand& command, Console& console);
[[nodiscard]] Result<int> run(const PlanCommand& command, Console& console);
[[nodiscard]] Result<int> run(const ConvertCommand& command, Console& console);
[[nodiscard]] Result<int> run(const PublishCommand& command, Console& console);
[[nodiscard]] Result<int> run(const DiagnoseCommand& command, Console& console);
[[nodiscard]] Result<int> run(const VerifyCommand& command, Console& console);
[[nodiscard]] Result<int> run(const DiffCommand& command, Console& console);
[[nodiscard]] Result<int> run(const HashCommand& command, Console& console);
[[nodiscard]] Result<int> run(const ShowCommand& command, Console& console);
[[nodiscard]] Result<int> run(const LocalityCommand& command, Console& console);
[[nodiscard]] Result<int> run(const IndexCommand& command, Console& console);
[[nodiscard]] Result<int> run(const CleanCommand& command, Console& console);
[[nodiscard]] Result<int> run(const ExplainCommand& command, Console& console);
[[nodiscard]] Result<int> run(const MapCommand& command, Console& console);
[[nodiscard]] Result<int> run(const MergeCommand& command, Console& console);
[[nodiscard]] Result<int> run(const SplitCommand& command, Console& console);
[[nodiscard]] Result<int> run(const ReportCommand& command, Console& console);
[[nodiscard]] Result<int> run(const DemoCommand& command, Console& console);

}  // namespace shardwright::cli
