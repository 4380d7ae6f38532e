// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/html_output.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"
#include "io/replace_file.h"

namespace shardwright::cli {
namespace {

std::string page_facts_text(const ReportCommand& command, const Report& report,
                            const Console& console) {
  std::string text = fmt::format(
      "{}: {}, {}, {}", console.bold(printable(command.output)), format_bytes(report.html.size()),
      format_count(report.tensors, "tensor"), format_count(report.findings, "error"));
  if (!command.request.other.empty()) text += fmt::format(", {}", report.verdict);
  return text + "\n";
}

std::string page_facts_json(const ReportCommand& command, const Report& report) {
  JsonWriter json;
  begin_document(json, "report");
  json.text("path", command.request.path).text("output", command.output);
  json.number("bytes", static_cast<std::uint64_t>(report.html.size()));
  json.number("tensors", report.tensors).number("errors", report.findings);
  json.key("equal");
  if (command.request.other.empty()) {
    json.null();
  } else {
    json.flag(report.is_equal);
  }
  json.key("failures").open_list();
  for (const Error& error : report.failures) {
    json.open_object().text("code", code_name(error.code)).text("message", error.message).close();
  }
  json.close().close();
  return json.take();
}

}  // namespace

Result<int> run(const ReportCommand& command, Console& console) {
  SW_TRY(check_page_place("-o", command.output, command.overwrite));
  WatchedRun watched(console);
  ReportRequest request = command.request;
  request.proof.run = watched.options();
  request.language = console.language();
  const Report report = SW_TRY(make_report(request));
  SW_TRY(replace_file(command.output, report.html));
  for (const Error& failure : report.failures) console.error(failure);
  console.print(command.json ? page_facts_json(command, report)
                             : page_facts_text(command, report, console));
  if (command.open) open_in_browser(command.output, console);
  const bool is_fine = report.findings == 0 && report.failures.empty() && report.is_equal;
  return is_fine ? kExitFine : kExitFindings;
}

}  // namespace shardwright::cli
