// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/translated.h"
#include "cli/code_label.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "diagnose/finding_words.h"
#include "format/formats.h"
#include "layout/texts.h"

namespace shardwright::cli {
namespace {

std::uint64_t count_of(const VerifyReport& report, Severity severity) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      report.findings, [&](const VerifyFinding& f) { return f.severity == severity; }));
}

// What is not guarded was not proven either, and the last line is what people read.
TextKey verdict_of(const VerifyReport& report) {
  if (report.has_errors()) return "verdict.not_proven";
  const bool is_blind = report.payloads_unguarded > 0 && report.payloads_checked == 0;
  if (is_blind) return "verdict.unguarded";
  return "verdict.proven";
}

// In Chinese the noun stands in the text around it.
Phrase counted(std::uint64_t count, std::string_view noun) {
  return {format_count(count, noun), format_count(count)};
}

std::string verify_report_text(const VerifyReport& report, Language language) {
  std::string text;
  for (const VerifyFinding& finding : report.findings) {
    fmt::format_to(std::back_inserter(text), "{}: {}\n",
                   code_label(severity_name(finding.severity), finding.code, language),
                   printable(in_language(finding.message)));
  }
  for (const Phrase& each : report.proven) text += "ok: " + printable(each.in(language)) + "\n";
  for (const std::string& note : report.notes)
    text += "note: " + printable(in_language(note)) + "\n";
  const Phrase verdict = phrase(
      "verdict.counts", {{"verdict", phrase(verdict_of(report))},
                         {"tensors", counted(report.tensors, "tensor")},
                         {"chunks", counted(report.chunks, "chunk")},
                         {"errors", counted(count_of(report, Severity::kError), "error")},
                         {"warnings", counted(count_of(report, Severity::kWarning), "warning")}});
  return text + verdict.in(language) + "\n";
}

std::string verify_report_json(const VerifyReport& report, Language language) {
  JsonWriter json;
  begin_document(json, "verify");
  json.text("path", report.path)
      .text("format", report.format)
      .text("container", shown_container(report.format));
  json.text("family", report.family).flag("proven", !report.has_errors());
  json.number("tensors", report.tensors).number("elements", report.elements);
  json.number("chunks", report.chunks).number("files", report.files);
  json.number("payloads_checked", report.payloads_checked);
  json.number("payloads_unguarded", report.payloads_unguarded);
  json.number("payload_bytes", report.payload_bytes);
  json.key("findings").open_list();
  for (const VerifyFinding& finding : report.findings) {
    json.open_object().text("code", code_name(finding.code));
    json.text("severity", severity_name(finding.severity)).text("object", finding.object);
    json.text("message", finding.message).close();
  }
  json.close().key("checks").open_list();
  for (const Phrase& each : report.proven) json.text(each.in(language));
  json.close().texts("notes", report.notes).close();
  return json.take();
}

}  // namespace

Result<int> run(const VerifyCommand& command, Console& console) {
  WatchedRun watched(console);
  VerifyOptions options = command.options;
  options.proof.run = watched.options();
  const VerifyReport report = SW_TRY(verify_checkpoint(command.path, options));
  if (!SW_TRY(watched.may_tell([&] { return verify_report_json(report, console.language()); })))
    return kExitFine;
  const std::string text = verify_report_text(report, console.language());
  console.record(text);
  console.print(command.json ? verify_report_json(report, console.language())
                             : fmt::format("{} ({})\n{}", console.bold(printable(report.path)),
                                           report.format, text));
  return report.has_errors() ? kExitFindings : kExitFine;
}

}  // namespace shardwright::cli
