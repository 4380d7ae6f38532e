// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "diagnose/finding_words.h"
#include "format/formats.h"

namespace shardwright::cli {
namespace {

std::uint64_t count_of(const VerifyReport& report, Severity severity) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      report.findings, [&](const VerifyFinding& f) { return f.severity == severity; }));
}

// What is not guarded was not proven either, and the last line is what people read.
std::string_view verdict_of(const VerifyReport& report) {
  if (report.has_errors()) return "NOT PROVEN";
  const bool is_blind = report.payloads_unguarded > 0 && report.payloads_checked == 0;
  return is_blind ? "PROVEN, but nothing guards the payload" : "PROVEN";
}

std::string verify_report_text(const VerifyReport& report, const Console& console) {
  std::string text = console.bold(printable(report.path)) + fmt::format(" ({})\n", report.format);
  for (const VerifyFinding& finding : report.findings) {
    fmt::format_to(std::back_inserter(text), "{}[{}]: {}\n", severity_name(finding.severity),
                   code_name(finding.code), printable(finding.message));
  }
  for (const std::string& line : report.proven) text += "ok: " + printable(line) + "\n";
  for (const std::string& note : report.notes) text += "note: " + printable(note) + "\n";
  fmt::format_to(std::back_inserter(text), "{}: {}, {}, {} and {}\n", verdict_of(report),
                 format_count(report.tensors, "tensor"), format_count(report.chunks, "chunk"),
                 format_count(count_of(report, Severity::kError), "error"),
                 format_count(count_of(report, Severity::kWarning), "warning"));
  return text;
}

std::string verify_report_json(const VerifyReport& report) {
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
  json.close().texts("checks", report.proven).texts("notes", report.notes).close();
  return json.take();
}

}  // namespace

Result<int> run_verify(const VerifyCommand& command, Console& console) {
  WatchedRun watched(console);
  VerifyOptions options = command.options;
  options.proof.run = watched.options();
  const VerifyReport report = SW_TRY(verify_checkpoint(command.path, options));
  if (!SW_TRY(watched.may_tell([&] { return verify_report_json(report); }))) return kExitFine;
  console.print(command.json ? verify_report_json(report) : verify_report_text(report, console));
  return report.has_errors() ? kExitFindings : kExitFine;
}

}  // namespace shardwright::cli
