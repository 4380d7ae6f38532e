// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "base/text.h"
#include "base/translated.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/json_output.h"
#include "cli/part_report.h"
#include "cli/quantity.h"
#include "diagnose/finding_words.h"

namespace shardwright::cli {
namespace {

std::string findings_text(const MergeReport& report) {
  std::string text;
  for (const MergeFinding& finding : report.findings) {
    fmt::format_to(std::back_inserter(text), "{}: {}{}{}\n", severity_name(finding.severity),
                   finding.part, finding.part.empty() ? "" : ": ",
                   printable(in_language(finding.text)));
    for (const std::string& name : finding.tensors) text += "  " + printable(name) + "\n";
  }
  return text;
}

void write_findings(JsonWriter& json, const MergeReport& report) {
  json.key("findings").open_list();
  for (const MergeFinding& finding : report.findings) {
    json.open_object().text("kind", finding.kind);
    json.text("severity", severity_name(finding.severity)).text("part", finding.part);
    json.text("text", finding.text).texts("tensors", finding.tensors).close();
  }
  json.close();
}

// What the command did. `run`: absent where nothing was written.
std::string merge_report_json(const PreparedMerge& merge, const FinishedRun* run) {
  JsonWriter json;
  begin_document(json, "merge");
  json.text("family", merge.report.family).flag("fits", !merge.report.has_errors());
  write_parts(json, merge.report.parts);
  write_findings(json, merge.report);
  json.flag("written", run != nullptr);
  if (run != nullptr) {
    json.text("output", run->report.output).number("bytes_written", run->report.bytes_written);
    json.number("files_written", run->report.files_written).real("seconds", run->seconds);
    json.texts("leftovers", run->report.leftovers);
  }
  if (merge.conversion) {
    json.texts("notes",
               run != nullptr ? notes_of(*merge.conversion, *run) : merge.conversion->notes);
  }
  json.close();
  return json.take();
}

std::string merge_report_text(const PreparedMerge& merge, const FinishedRun* run) {
  std::string text = parts_text(merge.report.parts) + findings_text(merge.report);
  if (merge.report.has_errors()) {
    return text + translated("these are no {} yet: nothing was written\n", merge.report.family);
  }
  if (run == nullptr) {
    return text + translated("these make a {}: nothing was written\n", merge.report.family);
  }
  return text + translated("wrote {} ({}): {} in {}, {}\n", printable(run->report.output),
                           merge.report.family, format_bytes(run->report.bytes_written),
                           format_count(run->report.files_written, "file"),
                           format_seconds(run->seconds));
}

}  // namespace

Result<int> run(const MergeCommand& command, Console& console) {
  const PreparedMerge merge = SW_TRY(prepare_merge(command.request));
  std::optional<FinishedRun> run;
  if (merge.conversion && command.dry_run) {
    const ReplacedOutput replaced = SW_TRY(replaced_output(*merge.conversion));
    if (!replaced.entries.empty()) {
      console.note(translated("this would replace ") + name_list(replaced.entries));
    }
  }
  if (merge.conversion && !command.dry_run) {
    tell_notes(*merge.conversion, console);
    run = SW_TRY(run_with_progress(*merge.conversion, console));
  }
  const FinishedRun* done = run ? &*run : nullptr;
  console.print(command.json ? merge_report_json(merge, done) : merge_report_text(merge, done));
  return merge.report.has_errors() ? kExitFindings : kExitFine;
}

}  // namespace shardwright::cli
