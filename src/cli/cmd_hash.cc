// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "base/fail.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "io/named_file.h"
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

// A path that was meant for another flag may be one of the checkpoint's own files.
Status check_place(const std::string& path) {
  constexpr std::uint64_t kMostManifestBytes = std::uint64_t{1} << 30;
  const std::filesystem::path place(path);
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(place, ignored))) {
    return check_replaceable(path);
  }
  const auto text = read_named_file(path, kMostManifestBytes);
  if (text && read_manifest(*text)) return check_replaceable(path);
  return fail(Code::kTargetExists,
              "--manifest {}: a file that is not a manifest lies there; choose another path or "
              "remove it",
              path);
}

}  // namespace

Result<int> run_hash(const HashCommand& command, Console& console) {
  WatchedRun watched(console);
  if (!command.manifest.empty()) SW_TRY(check_place(command.manifest));
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
