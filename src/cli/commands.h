// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/args.h"
#include "cli/console.h"

namespace shardwright::cli {

// Each command prints its result on the console and returns the exit status; an error is the
// caller's to report.

[[nodiscard]] Result<int> run_inspect(const InspectCommand& command, Console& console);
[[nodiscard]] Result<int> run_plan(const PlanCommand& command, Console& console);
[[nodiscard]] Result<int> run_convert(const ConvertCommand& command, Console& console);
[[nodiscard]] Result<int> run_publish(const PublishCommand& command, Console& console);
[[nodiscard]] Result<int> run_diagnose(const DiagnoseCommand& command, Console& console);
[[nodiscard]] Result<int> run_verify(const VerifyCommand& command, Console& console);
[[nodiscard]] Result<int> run_diff(const DiffCommand& command, Console& console);
[[nodiscard]] Result<int> run_hash(const HashCommand& command, Console& console);
[[nodiscard]] Result<int> run_show(const ShowCommand& command, Console& console);
[[nodiscard]] Result<int> run_locality(const LocalityCommand& command, Console& console);
[[nodiscard]] Result<int> run_index(const IndexCommand& command, Console& console);
[[nodiscard]] Result<int> run_clean(const CleanCommand& command, Console& console);
[[nodiscard]] Result<int> run_explain(const ExplainCommand& command, Console& console);
[[nodiscard]] Result<int> run_map(const MapCommand& command, Console& console);
[[nodiscard]] Result<int> run_merge(const MergeCommand& command, Console& console);
[[nodiscard]] Result<int> run_split(const SplitCommand& command, Console& console);
[[nodiscard]] Result<int> run_report(const ReportCommand& command, Console& console);
[[nodiscard]] Result<int> run_demo(const DemoCommand& command, Console& console);

}  // namespace shardwright::cli
