// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "io/replace_file.h"

namespace shardwright::cli {
namespace {

// As sha256sum has it: digest, two spaces, name.
std::string report_text(const HashReport& report) {
  std::string text;
  for (const auto* list : {&report.model, &report.beside}) {
    for (const TensorHash& tensor : *list) {
      fmt::format_to(std::back_inserter(text), "{}  {}\n", tensor.digest,
                     printable(tensor.desc.name));
    }
  }
  const std::string names = report.is_canonical ? "canonical tensors" : "tensors by stored names";
  if (!report.beside.empty()) {
    fmt::format_to(std::back_inserter(text), "{}  (beside the model: {})\n", report.beside_digest,
                   format_count(report.beside.size(), "tensor"));
  }
  fmt::format_to(std::back_inserter(text), "{}  (model: {} {})\n", report.model_digest,
                 format_count(report.model.size()), names);
  return text;
}

}  // namespace

Result<int> run_hash(const HashCommand& command, Console& console) {
  WatchedRun watched(console);
  ProofOptions options = command.options;
  options.run = watched.options();
  const HashReport report = SW_TRY(hash_checkpoint(command.path, options));
  for (const std::string& note : report.notes) console.message("note: " + note);
  if (!command.manifest.empty()) {
    SW_TRY(replace_file(command.manifest, write_manifest(report)));
  }
  console.print(command.json ? write_manifest(report) : report_text(report));
  return kExitFine;
}

}  // namespace shardwright::cli
