// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/fail.h"
#include "cli/command_line.h"
#include "cli/command_outline.h"
#include "cli/completion.h"
#include "cli/console_args.h"
#include "cli/conversion_flags.h"
#include "cli/help.h"
#include "cli/locale_language.h"
#include "cli/man_page.h"
#include "cli/options.h"
#include "cli/part_args.h"
#include "cli/proof_args.h"

namespace shardwright::cli {
namespace {

void add_inspect(CLI::App& app, InspectCommand& command) {
  constexpr std::int64_t kDeepest = 100;
  constexpr std::int64_t kLongest = 10'000'000;
  add_path(app, "PATH", command.path, "the path of a checkpoint or file");
  add_format(app, command.as, "PATH");
  add_list(app, "--tensors", command.tensors, "GLOB", "only tensors of this name; repeatable");
  add_flag(app, "--tree", command.tree, "modules with their tensors and bytes, alike ones as one");
  add_number(app, "--depth", command.depth,
             "levels of a pickle's values (default 4) or of the tree (default all)", kDeepest);
  add_number(app, "--limit", command.limit,
             "lines for tensors (default 100; all with --tensors) or a pickle's values (1000)",
             kLongest);
  add_flag(app, "--json", command.json, "everything as JSON on standard output");
}

Result<Command> to_inspect(const CLI::App&, InspectCommand& command) {
  if (command.tree && command.json) {
    return fail(Code::kUsage,
                "--tree is for people; with --json there is every tensor: leave one "
                "of them out");
  }
  return std::move(command);
}

void add_save(CLI::App& app, std::string& path) {
  add_text(app, "--save", path, "FILE",
           "write the plan for 'convert --plan FILE --part I/N' and 'publish FILE'");
}

void add_plan(CLI::App& app, PlanCommand& command) {
  add_conversion(app, command.request);
  add_flag(app, "-v,--verbose", command.verbose, "also every chunk, file by file");
  add_flag(app, "--json", command.json, "the plan as JSON on standard output");
  add_text(app, "--html", command.html, "FILE", "write the plan as a page that shows it");
  add_save(app, command.save);
}

struct ConversionArguments {
  ConvertRequest request;
  std::string plan;
  Part part;
  AverageArguments average;
  std::string save;  // the plan of a dry run; empty: nowhere
  bool dry_run = false;
  bool verbose = false;
  bool json = false;
};

void add_run(CLI::App& app, ConversionArguments& command) {
  add_flag(app, "--resume", command.request.resume,
           "go on with what a killed run left, and keep what this one leaves");
  add_flag(app, "--dry-run", command.dry_run, "as plan: show what would be done");
  add_flag(app, "-v,--verbose", command.verbose, "with --dry-run: also every chunk, file by file");
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

void add_convert(CLI::App& app, ConversionArguments& command) {
  add_conversion(app, command.request);
  add_part(app, command.plan, command.part);
  add_run(app, command);
}

void add_merge_adapter(CLI::App& app, ConversionArguments& command) {
  add_adapter_merge(app, command.request);
  add_run(app, command);
  add_save(app, command.save);
}

void add_averaging(CLI::App& app, ConversionArguments& command) {
  add_average(app, command.request, command.average);
  add_run(app, command);
  add_save(app, command.save);
}

Result<Command> to_plan(const CLI::App& app, PlanCommand& command) {
  SW_TRY(finish_conversion(app, command.request));
  return std::move(command);
}

Result<Command> to_run(const CLI::App& app, ConversionArguments& given) {
  SW_TRY(finish_conversion(app, given.request));
  if (given.dry_run) {
    PlanCommand plan{std::move(given.request), given.verbose, given.json};
    plan.save = std::move(given.save);
    return plan;
  }
  if (!given.save.empty()) {
    return fail(Code::kUsage, "--save writes what --dry-run plans; give both, or neither");
  }
  return ConvertCommand{std::move(given.request), given.json};
}

Result<Command> to_averaging(const CLI::App& app, ConversionArguments& given) {
  SW_TRY(finish_average(app, given.average, given.request));
  return to_run(app, given);
}

Result<Command> to_conversion(const CLI::App& app, ConversionArguments& given) {
  if (!is_given(app, "--plan")) return to_run(app, given);
  SW_TRY(refuse_beside_plan(app));
  return ConvertCommand{std::move(given.request), given.json, std::move(given.plan), given.part};
}

void add_publish(CLI::App& app, PublishCommand& command) {
  add_path(app, "FILE", command.plan, "the path of a saved plan");
  add_threads(app, command.request.threads);
  add_size(app, "--max-memory", command.request.max_memory_bytes, "default 256MiB");
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
}

void add_diagnose(CLI::App& app, DiagnoseCommand& command) {
  constexpr std::int64_t kLargest = 65'536;
  AxisSizes& believed = command.request.believed;
  add_path(app, "PATH", command.request.path, "the path of a checkpoint");
  add_number(app, kTp, believed.tensor, "tensor parallel size that you load with", kLargest);
  add_number(app, kPp, believed.pipeline, "pipeline parallel size", kLargest);
  add_number(app, kVpp, believed.virtual_pipeline, "virtual stages per pipeline rank", kLargest);
  add_number(app, kEp, believed.expert,
             "expert parallel size; above 1 asks for the EP-aware loader", kLargest);
  add_number(app, kEtp, believed.expert_tensor, "tensor parallel size of experts", kLargest);
  add_format(app, command.request.as, "PATH");
  add_flag(app, "--check-replicas", command.request.check_replicas,
           "compare the bytes of what several ranks hold");
  add_flag(app, "--json", command.json, "the diagnosis as JSON on standard output");
}

void add_locality(CLI::App& app, LocalityCommand& command) {
  ParallelConfig& parallel = command.parallel;
  add_path(app, "PATH", command.path, "the path of a checkpoint");
  add_number(app, kTp, parallel.tensor, "tensor parallel size of the job (default 1)", kMostRanks);
  add_number(app, kPp, parallel.pipeline, "pipeline parallel size (default 1)", kMostRanks);
  add_number(app, kVpp, parallel.virtual_pipeline, "virtual stages per pipeline rank (default 1)",
             kMostRanks);
  add_number(app, "--dp", command.data, "data parallel size (default 1)", kMostRanks);
  add_number(app, kEp, parallel.expert, "expert parallel size (default 1)", kMostRanks);
  add_number(app, kEtp, parallel.expert_tensor,
             "tensor parallel size of experts (default: as --tp)", kMostRanks);
  add_flag(app, "--optimizer", command.optimizer, "the job loads optimizer states too");
  add_format(app, command.as, "PATH");
  add_flag(app, "--json", command.json, "the counts as JSON on standard output");
}

Result<Command> to_locality(const CLI::App& app, LocalityCommand& command) {
  // Megatron-Core's own default.
  if (!is_given(app, "--etp")) command.parallel.expert_tensor = command.parallel.tensor;
  return std::move(command);
}

void add_explain(CLI::App& app, ExplainCommand& command) {
  add_path(app, "CODE", command.code, "a code such as SW0307 or L07");
  add_flag(app, "--json", command.json, "the page as JSON on standard output");
}

void add_map(CLI::App& app, MapCommand& command) {
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
  add_models(app, command.check.models_dir);
  CLI::App& check = add_action(app, "check");
  add_path(check, "FILE", command.check.file, "the path of a mapping file");
  require(add_text(check, "--hf", command.check.hf_dir, "DIR",
                   "the folder of a Hugging Face model to try FILE on"));
  add_action(app, "list");
}

void add_index(CLI::App& app, IndexCommand& command) {
  add_flag(app, "--json", command.json, "the report as JSON on standard output");
  add_path(add_action(app, "rebuild"), "DIR", command.path, "the folder of a Hugging Face model");
}

void add_clean(CLI::App& app, CleanCommand& command) {
  add_path(app, "DIR", command.path, "the folder that outputs were written in");
  add_flag(app, "--remove", command.remove, "remove those that no process holds");
  add_flag(app, "--json", command.json, "the list as JSON on standard output");
}

void add_demo(CLI::App& app, DemoCommand& command) {
  add_text(app, "--keep", command.keep, "DIR", "make the checkpoints there and leave them");
  add_text(app, "--checkpoint", command.checkpoint, "DIR", "a Hugging Face model to use instead");
  add_flag(app, "--json", command.json, "steps and verdict as JSON on standard output");
  add_models(app, command.models);
}

struct CompletionCommand {
  Shell shell = Shell::kBash;
};

void add_completion(CLI::App& app, CompletionCommand& command) {
  require(add_choice<Shell>(app, "SHELL", command.shell,
                            {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
                            "bash, zsh or fish"));
}

Result<Command> to_completion(const CLI::App& app, CompletionCommand& command) {
  return ShowText{completion_script(command.shell, outline_of(app))};
}

struct ManCommand {};

void add_man(CLI::App& /*app*/, ManCommand& /*command*/) {}

Result<Command> to_man(const CLI::App& app, ManCommand& /*command*/) {
  return ShowText{man_page(outline_of(app))};
}

template <class T>
Result<Command> as_given(const CLI::App&, T& command) {
  return std::move(command);
}

// What a command line that is being read has come to.
struct Reading {
  Result<Command> chosen = ShowText{};
  ConsoleOptions console;
};

template <class T>
void add(CommandLine& line, Reading& reading, std::string_view name, void (*declare)(CLI::App&, T&),
         Result<Command> (*finish)(const CLI::App&, T&) = as_given<T>) {
  const auto command = std::make_shared<T>();
  CLI::App& app =
      line.add_command(*find_command(name), [&reading, command, finish](const CLI::App& parsed) {
        reading.chosen = finish(parsed, *command);
      });
  declare(app, *command);
  add_console(app, reading.console);
}

void add_commands(CommandLine& line, Reading& reading) {
  add_console(line.before_commands(), reading.console);
  add(line, reading, "inspect", add_inspect, to_inspect);
  add(line, reading, "plan", add_plan, to_plan);
  add(line, reading, "convert", add_convert, to_conversion);
  add(line, reading, "publish", add_publish);
  add(line, reading, "diagnose", add_diagnose);
  add(line, reading, "verify", add_verify);
  add(line, reading, "diff", add_diff);
  add(line, reading, "hash", add_hash);
  add(line, reading, "show", add_show);
  add(line, reading, "locality", add_locality, to_locality);
  add(line, reading, "index", add_index);
  add(line, reading, "clean", add_clean);
  add(line, reading, "explain", add_explain);
  add(line, reading, "map", add_map);
  add(line, reading, "merge", add_merge);
  add(line, reading, "split", add_split);
  add(line, reading, "merge-adapter", add_merge_adapter, to_run);
  add(line, reading, "average", add_averaging, to_averaging);
  add(line, reading, "report", add_report, to_report);
  add(line, reading, "demo", add_demo);
  add(line, reading, "completion", add_completion, to_completion);
  add(line, reading, "man", add_man, to_man);
}

}  // namespace

Result<Request> parse_arguments(std::span<const std::string> arguments) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!words.empty() && words.front() == "help") {
    words = words.size() == 1 ? std::vector<std::string>{"--help"}
                              : std::vector<std::string>{words[1], "--help"};
  }
  Reading reading;
  CommandLine line;
  add_commands(line, reading);
  if (auto text = SW_TRY(line.parse(words))) return Request{*std::move(text), {}};
  return Request{SW_TRY(std::move(reading.chosen)), std::move(reading.console)};
}

bool asks_for_json(std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

Language asked_language(std::span<const std::string> arguments) {
  Language language = language_from_environment();
  const auto end = std::ranges::find(arguments, "--");
  std::string_view before;
  for (auto word = arguments.begin(); word != end; before = *word++) {
    const auto asks_for = [&](std::string_view name) {
      return (before == "--lang" && *word == name) || *word == fmt::format("--lang={}", name);
    };
    if (asks_for("en")) language = Language::kEnglish;
    if (asks_for("zh")) language = Language::kChinese;
  }
  return language;
}

}  // namespace shardwright::cli
