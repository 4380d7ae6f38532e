// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <exception>
#include <variant>

#include "base/fail.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/dialect.h"
#include "cli/help.h"
#include "cli/json_output.h"

namespace shardwright::cli {
namespace {

struct Runner {
  Console& console;

  Result<int> operator()(const ShowText& show) const {
    console.print(show.text);
    return kExitFine;
  }
  Result<int> operator()(const InspectCommand& command) const {
    return run_inspect(command, console);
  }
  Result<int> operator()(const PlanCommand& command) const { return run_plan(command, console); }
  Result<int> operator()(const ConvertCommand& command) const {
    return run_convert(command, console);
  }
  Result<int> operator()(const DiagnoseCommand& command) const {
    return run_diagnose(command, console);
  }
  Result<int> operator()(const VerifyCommand& command) const {
    return run_verify(command, console);
  }
  Result<int> operator()(const DiffCommand& command) const { return run_diff(command, console); }
  Result<int> operator()(const HashCommand& command) const { return run_hash(command, console); }
  Result<int> operator()(const ShowCommand& command) const { return run_show(command, console); }
  Result<int> operator()(const IndexCommand& command) const { return run_index(command, console); }
  Result<int> operator()(const ExplainCommand& command) const {
    return run_explain(command, console);
  }
  Result<int> operator()(const MapCommand& command) const { return run_map(command, console); }
  Result<int> operator()(const MergeCommand& command) const { return run_merge(command, console); }
  Result<int> operator()(const SplitCommand& command) const { return run_split(command, console); }
  Result<int> operator()(const DemoCommand& command) const { return run_demo(command, console); }
};

Result<int> run(const std::vector<std::string>& arguments, Console& console) {
  const Command command = SW_TRY(parse_arguments(arguments));
  return std::visit(Runner{console}, command);
}

int report(const Error& error, const std::vector<std::string>& arguments, Console& console) {
  if (asks_for_json(arguments)) {
    const CommandHelp* help = find_command(arguments.front());
    console.print(error_json(help == nullptr ? "error" : help->name, error));
  }
  console.error(error);
  return kExitFailure;
}

// The library's errors are values; what is thrown comes from below it, such as no memory.
Result<int> run_without_exceptions(const std::vector<std::string>& arguments, Console& console) {
  try {
    return run(arguments, console);
  } catch (const std::exception& exception) {
    return fail(Code::kInternal, "shardwright: {}", exception.what());
  }
}

}  // namespace

int run_command_line(const std::vector<std::string>& words, Console& console) {
  const std::vector<std::string> arguments = to_canonical_flags(words);
  const auto status = run_without_exceptions(arguments, console);
  return console.exit_status(status ? *status : report(status.error(), arguments, console));
}

}  // namespace shardwright::cli
