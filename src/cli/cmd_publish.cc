// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translated.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/summary.h"
#include "format/targets.h"

namespace shardwright::cli {
namespace {

std::string publish_report_json(const PreparedConversion& conversion, const FinishedRun& run) {
  JsonWriter json;
  begin_document(json, "publish");
  json.text("output", run.report.output).text("format", traits_of(conversion.request.format).name);
  write_layout(json, conversion.request.parallel);
  json.text("family", conversion.family);
  json.number("bytes_checked", run.report.bytes_resumed);
  json.number("bytes_written", run.report.bytes_written);
  json.number("files_written", run.report.files_written).real("seconds", run.seconds);
  json.texts("leftovers", run.report.leftovers).texts("notes", conversion.notes).close();
  return json.take();
}

std::string publish_report_text(const PreparedConversion& conversion, const FinishedRun& run) {
  const ConvertReport& report = run.report;
  return translated("published {} ({}): {} of its parts are as they were written, {}, {}\n",
                    printable(report.output), target_text(conversion.request),
                    format_bytes(report.bytes_resumed), format_count(report.files_written, "file"),
                    format_seconds(run.seconds));
}

}  // namespace

Result<int> run(const PublishCommand& command, Console& console) {
  const SavedPlan plan = SW_TRY(read_plan_for(command.plan, command.request));
  const PreparedConversion conversion = SW_TRY(prepare_with_progress(plan.request, console));
  for (const std::string& note : conversion.notes) console.note(note);
  const FinishedRun run = SW_TRY(publish_with_progress(conversion, plan, console));
  console.print(command.json ? publish_report_json(conversion, run)
                             : publish_report_text(conversion, run));
  return kExitFine;
}

}  // namespace shardwright::cli
