// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translated.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"

namespace shardwright::cli {
namespace {

std::string lines_of(const std::vector<std::string>& names, std::string_view what) {
  std::string text;
  for (const std::string& name : names) text += translated("{}: {}\n", what, printable(name));
  return text;
}

std::string index_report_text(const IndexReport& report) {
  std::string text = lines_of(report.ghosts, "in no file") +
                     lines_of(report.unlisted, "was not in the index") +
                     lines_of(report.misplaced, "in another file than the index said") +
                     lines_of(report.left_out, "left out, not a file of the model by its name");
  const std::string content =
      translated("{} of {} in {}", format_count(report.tensors, "tensor"),
                 format_bytes(report.total_bytes), format_count(report.files, "file"));
  if (report.was_right) {
    return text + translated("{} is right: {}\n", printable(report.path), content);
  }
  text += translated("wrote {}: {}\n", printable(report.path), content);
  if (!report.backup.empty()) text += translated("the old one is {}\n", printable(report.backup));
  return text;
}

std::string index_report_json(const IndexReport& report) {
  JsonWriter json;
  begin_document(json, "index");
  json.text("path", report.path).text("backup", report.backup);
  json.flag("written", !report.was_right).number("tensors", report.tensors);
  json.number("files", report.files).number("total_bytes", report.total_bytes);
  json.texts("ghosts", report.ghosts).texts("unlisted", report.unlisted);
  json.texts("misplaced", report.misplaced).texts("left_out", report.left_out).close();
  return json.take();
}

}  // namespace

Result<int> run(const IndexCommand& command, Console& console) {
  const IndexReport report = SW_TRY(rebuild_index(command.path));
  console.print(command.json ? index_report_json(report) : index_report_text(report));
  return kExitFine;
}

}  // namespace shardwright::cli
