// SPDX-License-Identifier: Apache-2.0
#include "cli/proof_args.h"

#include <charconv>
#include <cmath>

#include "base/fail.h"
#include "base/text.h"
#include "cli/flags.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

using Arguments = std::span<const std::string>;

// Flags of ProofOptions that are checked once all are read.
struct ProofFlags {
  std::optional<std::string> vocab_size;
  std::optional<std::string> threads;
};

void add_proof(Flags& flags, ProofFlags& texts, ProofOptions& options) {
  flags.value("--hf-config", options.hf_config_dir, "DIR", "folder with config.json");
  flags.value("--family", options.family, "NAME", "model family, where it can't be detected");
  flags.values("--map", options.map_files, "FILE", "a further mapping file; repeatable");
  flags.value("--vocab-size", texts.vocab_size, "N",
              "vocabulary rows that mean something; the rest is padding");
  flags.flag("--own-names", options.own_names, "tensors as they are stored, without a mapping");
  flags.value("--threads", texts.threads, "N", "default: one per processor");
  add_models(flags, options.models_dir);
}

Status finish_proof(const ProofFlags& texts, ProofOptions& options) {
  if (texts.vocab_size) {
    options.vocab_size = SW_TRY(parse_count("--vocab-size", *texts.vocab_size));
  }
  if (texts.threads) options.threads = SW_TRY(parse_threads(*texts.threads));
  return {};
}

Status require(const char* name, const std::string& value, std::string_view what) {
  if (!value.empty()) return {};
  return fail(Code::kUsage, "{}: found nothing, expected {}", name, what);
}

Result<double> parse_tolerance(const std::string& text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0.0) {
    return fail(Code::kUsage, "--tolerance: found '{}', expected a number such as 1e-6",
                printable(text));
  }
  return value;
}

}  // namespace

Result<Command> parse_verify(const CommandHelp& help, Arguments arguments) {
  VerifyCommand command;
  ProofFlags texts;
  Flags flags(help);
  flags.positional("PATH", command.path);
  flags.value("--against", command.options.against, "PATH",
              "a manifest of hash, or another checkpoint");
  add_proof(flags, texts, command.options.proof);
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  SW_TRY(require("PATH", command.path, "the path of a checkpoint"));
  SW_TRY(finish_proof(texts, command.options.proof));
  return command;
}

Result<Command> parse_diff(const CommandHelp& help, Arguments arguments) {
  DiffCommand command;
  ProofFlags texts;
  std::optional<std::string> tolerance;
  Flags flags(help);
  flags.positional("A", command.left);
  flags.positional("B", command.right);
  flags.value("--tolerance", tolerance, "X",
              "floating point numbers this near are equal (default: only equal bits are)");
  add_proof(flags, texts, command.options);
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  SW_TRY(require("A", command.left, "the paths of two checkpoints"));
  SW_TRY(require("B", command.right, "the path of a second checkpoint"));
  SW_TRY(finish_proof(texts, command.options));
  if (tolerance) command.tolerance = SW_TRY(parse_tolerance(*tolerance));
  return command;
}

Result<Command> parse_hash(const CommandHelp& help, Arguments arguments) {
  HashCommand command;
  ProofFlags texts;
  Flags flags(help);
  flags.positional("PATH", command.path);
  flags.value("--manifest", command.manifest, "FILE", "write the digests there");
  add_proof(flags, texts, command.options);
  flags.flag("--json", command.json, "the manifest on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  SW_TRY(require("PATH", command.path, "the path of a checkpoint"));
  SW_TRY(finish_proof(texts, command.options));
  return command;
}

Result<Command> parse_show(const CommandHelp& help, Arguments arguments) {
  ShowCommand command;
  std::optional<std::string> threads;
  Flags flags(help);
  flags.positional("PATH", command.path);
  flags.positional("TENSOR", command.tensor);
  flags.value("--threads", threads, "N", "default: one per processor");
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  SW_TRY(require("PATH", command.path, "the path of a checkpoint"));
  SW_TRY(require("TENSOR", command.tensor, "the name of a tensor; see inspect PATH"));
  SW_TRY(finish_proof({std::nullopt, threads}, command.options));
  return command;
}

Result<Command> parse_index(const CommandHelp& help, Arguments arguments) {
  IndexCommand command;
  std::string verb;
  Flags flags(help);
  flags.positional("rebuild", verb);
  flags.positional("DIR", command.path);
  flags.flag("--json", command.json, "the report as JSON on standard output");
  if (SW_TRY(flags.parse(arguments))) return flags.help();
  if (verb != "rebuild") {
    return fail(Code::kUsage, "index: found '{}', expected 'index rebuild DIR'", printable(verb));
  }
  SW_TRY(require("DIR", command.path, "the folder of a Hugging Face model"));
  return command;
}

}  // namespace shardwright::cli
