// SPDX-License-Identifier: Apache-2.0
#include "cli/part_args.h"

#include "base/fail.h"
#include "base/text.h"
#include "cli/flags.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

using Arguments = std::span<const std::string>;

// What both commands take; the sizes are checked once all are read.
struct PartFlags {
  std::optional<std::string> max_shard_size;
  std::optional<std::string> threads;
};

template <class Request>
void add_common(Flags& flags, PartFlags& texts, Request& request) {
  flags.value("--family", request.family, "NAME", "model family, where it can't be detected");
  flags.values("--map", request.map_files, "FILE", "a further mapping file; repeatable");
  flags.value("--max-shard-size", texts.max_shard_size, "SIZE",
              "of one safetensors file (default 5GB)");
  flags.value("--threads", texts.threads, "N", "default: one per processor");
  flags.flag("--overwrite", request.overwrite, "replace OUT once the new one is complete");
  add_models(flags, request.models_dir);
}

template <class Request>
Status finish_common(const PartFlags& texts, Request& request) {
  if (texts.max_shard_size) {
    request.max_shard_bytes = SW_TRY(parse_bytes("--max-shard-size", *texts.max_shard_size));
  }
  if (texts.threads) request.threads = SW_TRY(parse_threads(*texts.threads));
  return {};
}

Result<PartFolder> to_folder(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return fail(Code::kUsage, "--component: found '{}', expected NAME=DIR such as images=VIT",
                printable(text));
  }
  return PartFolder{text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace

Result<Command> parse_merge(const CommandHelp& help, Arguments arguments) {
  MergeCommand command;
  PartFlags texts;
  std::vector<std::string> components;
  Flags flags(help);
  flags.positional("OUT", command.request.output);
  flags.values("--component", components, "NAME=DIR",
               "a part and the folder of its checkpoint; repeatable");
  flags.value("--config", command.request.config, "PATH",
              "the whole model's config.json, or the folder with it and other files to take along");
  flags.values("--without", command.request.without, "NAME",
               "a part that the merged model may lack; repeatable");
  add_common(flags, texts, command.request);
  flags.flag("--dry-run", command.dry_run, "only say whether the parts belong together");
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (command.request.output.empty()) {
    return fail(Code::kUsage, "OUT: found nothing, expected the path of the new model");
  }
  for (const std::string& text : components) {
    command.request.parts.push_back(SW_TRY(to_folder(text)));
  }
  SW_TRY(finish_common(texts, command.request));
  return command;
}

Result<Command> parse_split(const CommandHelp& help, Arguments arguments) {
  SplitCommand command;
  PartFlags texts;
  Flags flags(help);
  flags.positional("IN", command.request.input);
  flags.positional("OUT", command.request.output);
  add_common(flags, texts, command.request);
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (command.request.input.empty() || command.request.output.empty()) {
    return fail(Code::kUsage,
                "split: found {}, expected the paths of a model and of the folder for its parts",
                command.request.input.empty() ? "nothing" : "one path");
  }
  SW_TRY(finish_common(texts, command.request));
  return command;
}

}  // namespace shardwright::cli
