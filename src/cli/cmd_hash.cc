// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "base/fail.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/named_output.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "io/replace_file.h"

namespace shardwright::cli {
namespace {

// As sha256sum has it: digest, two spaces, name.
std::string hash_report_text(const HashReport& report) {
  std::string text;
  for (const auto* list : {&report.model, &report.beside}) {
    for (const TensorHash& tensor : *list) {
      fmt::format_to(std::back_inserter(text), "{}  {}\n", tensor.digest,
                     printable(tensor.desc.name));
    }
  }
  const std::string names =
      report.is_canonical ? translated("canonical tensors") : translated("tensors by stored names");
  if (!report.beside.empty()) {
    text += translated("{}  (beside the model: {})\n", report.beside_digest,
                       format_count(report.beside.size(), "tensor"));
  }
  text += translated("{}  (model: {} {})\n", report.model_digest, format_count(report.model.size()),
                     names);
  return text;
}

}  // namespace

Result<int> run(const HashCommand& command, Console& console) {
  WatchedRun watched(console);
  if (!command.manifest.empty()) {
    const auto is_manifest = [](std::string_view text) { return read_manifest(text).has_value(); };
    SW_TRY(check_named_output("--manifest", command.manifest, is_manifest));
  }
  ProofOptions options = command.options;
  options.run = watched.options();
  const HashReport report = SW_TRY(hash_checkpoint(command.path, options));
  if (!SW_TRY(watched.may_tell([&] { return write_manifest(report); }))) return kExitFine;
  for (const std::string& note : report.notes) console.note(note);
  // First what took hours to find out: the disk may be full now.
  console.print(command.json ? write_manifest(report) : hash_report_text(report));
  if (!command.manifest.empty()) {
    SW_TRY(replace_file(command.manifest, write_manifest(report)));
  }
  return kExitFine;
}

}  // namespace shardwright::cli
