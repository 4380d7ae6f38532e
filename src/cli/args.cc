// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "cli/conversion_flags.h"
#include "cli/flags.h"
#include "cli/help.h"
#include "cli/part_args.h"
#include "cli/proof_args.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

using Arguments = std::span<const std::string>;

Result<Command> parse_inspect(const CommandHelp& help, Arguments arguments) {
  InspectCommand command;
  std::string depth = std::to_string(command.depth);
  std::string limit = std::to_string(command.limit);
  Flags flags(help);
  flags.positional("PATH", command.path);
  flags.values("--tensors", command.tensors, "GLOB", "only tensors of this name; repeatable");
  flags.value("--depth", depth, "N", "levels of a pickle's values (default 4)");
  flags.value("--limit", limit, "N", "lines for a pickle's values (default 1000)");
  flags.flag("--json", command.json, "everything as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (command.path.empty()) {
    return fail(Code::kUsage, "PATH: found nothing, expected the path of a checkpoint or file");
  }
  constexpr std::int64_t kDeepest = 100;
  constexpr std::int64_t kLongest = 10'000'000;
  command.depth = SW_TRY(parse_count("--depth", depth, kDeepest));
  command.limit = SW_TRY(parse_count("--limit", limit, kLongest));
  return command;
}

void add_conversion(Flags& flags, ConversionFlags& to) {
  flags.positional("IN", to.input);
  flags.positional("OUT", to.output);
  flags.value("--to", to.to, "FORMAT",
              "hf, torch_dist, legacy, mimo, fsdp_dtensor, or the source's own names: dcp, "
              "safetensors");
  flags.value("--tp", to.tp, "N", "tensor parallel size (default 1)");
  flags.value("--pp", to.pp, "N", "pipeline parallel size (default 1)");
  flags.value("--vpp", to.vpp, "N", "virtual stages per pipeline rank (default 1)");
  flags.value("--ep", to.ep, "N", "expert parallel size (default 1)");
  flags.value("--etp", to.etp, "N", "tensor parallel size of experts (default: as --tp)");
  flags.value("--encoder-tp", to.encoder_tp, "N",
              "of legacy: tensor parallel size of encoders, "
              "--encoder-tensor-model-parallel-size (default: as --tp)");
  flags.values("--component", to.components, "SPEC",
               "of mimo: name=tp=N[,pp=,dp=,cp=,ep=,etp=,rank_offset=]; repeatable");
  flags.value("--world-size", to.world_size, "N", "of mimo: ranks of the whole run");
  flags.value("--mtp", to.mtp, "keep|drop|from=DIR",
              "layers for multi-token prediction (default: keep, drop for mimo); from= takes those "
              "of another Hugging Face checkpoint of the model");
  flags.value("--hf-config", to.hf_config, "DIR", "folder with config.json and tokenizer files");
  flags.value("--family", to.family, "NAME", "model family, where it can't be detected");
  flags.values("--map", to.map_files, "FILE", "a further mapping file; repeatable");
  flags.value("--dtype", to.dtype, "TYPE", "keep (default), bfloat16, float16 or float32");
  flags.values("--include", to.include, "GLOB", "only source tensors of this name; repeatable");
  flags.values("--exclude", to.exclude, "GLOB", "not these; repeatable");
  flags.value("--spec", to.spec, "te|local",
              "modules to name entries for (default: the source's; te from hf)");
  flags.value("--optimizer", to.optimizer, "WHAT",
              "keep or drop optimizer state (default: keep for Megatron targets and dcp)");
  flags.value("--check-replicas", to.check_replicas, "WHAT",
              "all (default), sample or none: compare what several ranks hold alike");
  flags.value("--naming", to.naming, "megatron|tp_pp_ep",
              "of legacy folders: as Megatron does, or three numbers wherever EP > 1");
  flags.value("--make-vocab-size-divisible-by", to.make_vocab_size_divisible_by, "N",
              "pad the vocabulary with zero rows to a multiple of N x TP");
  flags.value("--max-shard-size", to.max_shard_size, "SIZE",
              "of one safetensors file (default 5GB)");
  flags.value("--shards", to.shards, "N", "ranks that share out a DCP or fsdp_dtensor target (1)");
  flags.value("--source-ep", to.source_ep, "N", "of an MLite source, where it can't be read off");
  flags.value("--source-etp", to.source_etp, "N", "likewise");
  flags.value("--source-tp", to.source_tp, "N", "likewise");
  flags.value("--threads", to.threads, "N", "default: one per processor");
  flags.value("--max-memory", to.max_memory, "SIZE", "default 256MiB");
  flags.flag("--overwrite", to.overwrite, "replace OUT once the new one is complete");
  add_models(flags, to.models);
}

Result<Command> parse_plan(const CommandHelp& help, Arguments arguments) {
  PlanCommand command;
  ConversionFlags conversion;
  Flags flags(help);
  add_conversion(flags, conversion);
  flags.flag("-v,--verbose", command.verbose, "also every chunk, file by file");
  flags.flag("--json", command.json, "the plan as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  command.request = SW_TRY(to_request(conversion));
  return command;
}

Result<Command> parse_convert(const CommandHelp& help, Arguments arguments) {
  ConvertCommand command;
  ConversionFlags conversion;
  bool dry_run = false;
  bool verbose = false;
  Flags flags(help);
  add_conversion(flags, conversion);
  flags.flag("--dry-run", dry_run, "as plan: show what would be done");
  flags.flag("-v,--verbose", verbose, "with --dry-run: also every chunk, file by file");
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  command.request = SW_TRY(to_request(conversion));
  if (dry_run) return PlanCommand{std::move(command.request), verbose, command.json};
  return command;
}

// `zh_CN.UTF-8` and its like; what is set first among these counts, as everywhere.
std::string language_from_environment() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return std::string_view(value).starts_with("zh") ? "zh" : "en";
  }
  return "en";
}

void add_language(Flags& flags, std::string& language) {
  language = language_from_environment();
  flags.value("--lang", language, "en|zh", "language of the text (default: from LANG)");
}

Result<Language> to_language(const std::string& language) {
  if (language == "en") return Language::kEnglish;
  if (language == "zh") return Language::kChinese;
  return fail(Code::kUsage, "--lang: found '{}', expected en or zh", printable(language));
}

Result<Command> parse_diagnose(const CommandHelp& help, Arguments arguments) {
  DiagnoseCommand command;
  AxisSizes& believed = command.request.believed;
  struct Size {
    const char* flag;
    const char* text;
    std::optional<std::int64_t>* to;
    std::optional<std::string> given;
  };
  std::array sizes = {
      Size{"--tp", "tensor parallel size that you load with", &believed.tensor, {}},
      Size{"--pp", "pipeline parallel size", &believed.pipeline, {}},
      Size{"--vpp", "virtual stages per pipeline rank", &believed.virtual_pipeline, {}},
      Size{"--ep",
           "expert parallel size; above 1 asks for the EP-aware loader",
           &believed.expert,
           {}},
      Size{"--etp", "tensor parallel size of experts", &believed.expert_tensor, {}},
  };
  std::string language;
  Flags flags(help);
  flags.positional("PATH", command.request.path);
  for (Size& size : sizes) flags.value(size.flag, size.given, "N", size.text);
  flags.flag("--check-replicas", command.request.check_replicas,
             "compare the bytes of what several ranks hold");
  flags.flag("--json", command.json, "the diagnosis as JSON on standard output");
  add_language(flags, language);
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (command.request.path.empty()) {
    return fail(Code::kUsage, "PATH: found nothing, expected the path of a checkpoint");
  }
  constexpr std::int64_t kMost = 65'536;
  for (Size& size : sizes) {
    if (size.given) *size.to = SW_TRY(parse_count(size.flag, *size.given, kMost));
  }
  command.language = SW_TRY(to_language(language));
  return command;
}

Result<Command> parse_explain(const CommandHelp& help, Arguments arguments) {
  ExplainCommand command;
  std::string language;
  Flags flags(help);
  flags.positional("CODE", command.code);
  add_language(flags, language);
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (command.code.empty()) {
    return fail(Code::kUsage, "CODE: found nothing, expected a code such as SW0307 or L07");
  }
  command.language = SW_TRY(to_language(language));
  return command;
}

Result<Command> parse_map(const CommandHelp& help, Arguments arguments) {
  MapCommand command;
  std::string action;
  Flags flags(help);
  flags.positional("ACTION", action);
  flags.positional("FILE", command.check.file);
  flags.value("--hf", command.check.hf_dir, "DIR", "a model to try FILE on: config.json, headers");
  flags.flag("--json", command.json, "the report as JSON on standard output");
  add_models(flags, command.check.models_dir);
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (action == "list") {
    if (command.check.file.empty() && command.check.hf_dir.empty()) return command;
    return fail(Code::kUsage, "map list: found a file or --hf, expected neither");
  }
  if (action != "check") {
    return fail(Code::kUsage,
                "map: found '{}', expected check or list; see 'shardwright map --help'",
                printable(action));
  }
  if (command.check.file.empty()) {
    return fail(Code::kUsage, "FILE: found nothing, expected the path of a mapping file");
  }
  if (command.check.hf_dir.empty()) {
    return fail(Code::kUsage, "--hf: found nothing, expected the folder of a Hugging Face model");
  }
  return command;
}

Result<Command> parse_demo(const CommandHelp& help, Arguments arguments) {
  DemoCommand command;
  Flags flags(help);
  flags.value("--keep", command.keep, "DIR", "make the checkpoints there and leave them");
  flags.value("--checkpoint", command.checkpoint, "DIR", "a Hugging Face model to use instead");
  flags.flag("--json", command.json, "steps and verdict as JSON on standard output");
  add_models(flags, command.models);
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  return command;
}

Result<Command> parse_command(const CommandHelp& help, Arguments arguments) {
  if (help.name == "inspect") return parse_inspect(help, arguments);
  if (help.name == "plan") return parse_plan(help, arguments);
  if (help.name == "convert") return parse_convert(help, arguments);
  if (help.name == "diagnose") return parse_diagnose(help, arguments);
  if (help.name == "verify") return parse_verify(help, arguments);
  if (help.name == "diff") return parse_diff(help, arguments);
  if (help.name == "hash") return parse_hash(help, arguments);
  if (help.name == "show") return parse_show(help, arguments);
  if (help.name == "index") return parse_index(help, arguments);
  if (help.name == "explain") return parse_explain(help, arguments);
  if (help.name == "map") return parse_map(help, arguments);
  if (help.name == "merge") return parse_merge(help, arguments);
  if (help.name == "split") return parse_split(help, arguments);
  return parse_demo(help, arguments);
}

// `inspect, plan, convert or demo`.
std::string command_names() {
  std::string names;
  for (std::size_t i = 0; i < kCommandCount; ++i) {
    if (i > 0) names += i + 1 == kCommandCount ? " or " : ", ";
    names += command_helps()[i].name;
  }
  return names;
}

std::unexpected<Error> refuse_command(std::string_view name) {
  std::vector<std::string_view> names = {"--help", "--version"};
  for (const CommandHelp& help : command_helps()) names.push_back(help.name);
  const std::string_view meant = nearest_of(name, names);
  return fail(Code::kUsage, "shardwright: found '{}', expected {}; {}", printable(name),
              command_names(),
              meant.empty() ? "see 'shardwright --help'" : fmt::format("did you mean {}?", meant));
}

}  // namespace

Result<Command> parse_arguments(Arguments arguments) {
  if (arguments.empty()) {
    return fail(Code::kUsage,
                "shardwright: found no command, expected {}; see 'shardwright --help'",
                command_names());
  }
  const std::string& first = arguments.front();
  if (first == "--version" || first == "-V") return ShowText{version_text()};
  if (first == "--help" || first == "-h") return ShowText{overview_text()};
  if (first == "help") {
    if (arguments.size() == 1) return ShowText{overview_text()};
    const CommandHelp* help = find_command(arguments[1]);
    if (help == nullptr) return refuse_command(arguments[1]);
    const std::vector<std::string> asks_help = {"--help"};
    return parse_command(*help, asks_help);
  }
  const CommandHelp* help = find_command(first);
  if (help == nullptr) return refuse_command(first);
  return parse_command(*help, arguments.subspan(1));
}

bool asks_for_json(Arguments arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

}  // namespace shardwright::cli
