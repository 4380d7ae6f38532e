// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translated.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/json_output.h"
#include "cli/part_report.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

std::string split_report_json(const PreparedSplit& split, const FinishedRun& run) {
  JsonWriter json;
  begin_document(json, "split");
  json.text("family", split.family).text("output", run.report.output);
  write_parts(json, split.parts);
  json.number("bytes_written", run.report.bytes_written);
  json.number("files_written", run.report.files_written).real("seconds", run.seconds);
  json.texts("leftovers", run.report.leftovers);
  json.texts("notes", notes_of(split.conversion, run)).close();
  return json.take();
}

std::string split_report_text(const PreparedSplit& split, const FinishedRun& run) {
  return parts_text(split.parts) +
         translated("wrote {} (parts of {}): {} in {}, {}\n", printable(run.report.output),
                    split.family, format_bytes(run.report.bytes_written),
                    format_count(run.report.files_written, "file"), format_seconds(run.seconds));
}

}  // namespace

Result<int> run(const SplitCommand& command, Console& console) {
  const PreparedSplit split = SW_TRY(prepare_split(command.request));
  tell_notes(split.conversion, console);
  const FinishedRun run = SW_TRY(run_with_progress(split.conversion, console));
  console.print(command.json ? split_report_json(split, run) : split_report_text(split, run));
  return kExitFine;
}

}  // namespace shardwright::cli
