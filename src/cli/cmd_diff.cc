// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/translated.h"
#include "cli/commands.h"
#include "cli/diff_stat.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/watched_run.h"

namespace shardwright::cli {
namespace {

struct Counts {
  std::uint64_t shapes = 0;
  std::uint64_t dtypes = 0;
};

Counts count_mismatches(const DiffReport& report) {
  Counts counts;
  for (const TensorDifference& difference : report.differences) {
    const bool same_shape = difference.left.shape == difference.right.shape;
    counts.shapes += same_shape ? 0U : 1U;
    counts.dtypes += difference.left.dtype != difference.right.dtype ? 1U : 0U;
  }
  return counts;
}

std::string tensor_words(const TensorDesc& desc) {
  return fmt::format("{} {}", torch_name(desc.dtype), to_string(desc.shape));
}

std::string line_of(const TensorDifference& difference) {
  const std::string name = printable(difference.left.name);
  if (difference.is_mismatch()) {
    return translated("{}: {}, and on the right {}\n", name, tensor_words(difference.left),
                      tensor_words(difference.right));
  }
  return translated("{}: {} {}, first at {}, max_delta {}\n", name,
                    format_count(difference.differing, "element"),
                    difference.differing == 1 ? translated("differs") : translated("differ"),
                    to_string(difference.first), difference.max_delta);
}

std::string tensor_lines(const DiffReport& report) {
  std::string text;
  for (const std::string& name : report.missing_left) {
    text += translated("{}: only on the right\n", printable(name));
  }
  for (const std::string& name : report.missing_right) {
    text += translated("{}: only on the left\n", printable(name));
  }
  for (const TensorDifference& difference : report.differences) text += line_of(difference);
  return text;
}

std::string diff_report_text(const DiffReport& report, bool stat) {
  std::string text = stat ? diff_stat_text(report) : tensor_lines(report);
  for (const std::string& setting : report.settings) text += setting + "\n";
  const Counts counts = count_mismatches(report);
  text += translated(
      "{}: {} compared ({}), missing left {}, missing right {}, shape mismatches {}, "
      "dtype mismatches {}, differing elements {}, max_delta {}\n",
      report.verdict(), format_count(report.compared, "tensor"),
      format_count(report.elements, "element"), report.missing_left.size(),
      report.missing_right.size(), counts.shapes, counts.dtypes, report.differing,
      report.max_delta);
  return text;
}

void write_desc(JsonWriter& json, std::string_view key, const TensorDesc& desc) {
  json.key(key).open_object().text("dtype", torch_name(desc.dtype));
  write_dims(json, "shape", desc.shape);
  json.close();
}

std::string diff_report_json(const DiffReport& report) {
  const Counts counts = count_mismatches(report);
  JsonWriter json;
  begin_document(json, "diff");
  json.text("left", report.left).text("right", report.right);
  json.text("names", report.is_canonical ? "canonical" : "stored").text("family", report.family);
  json.flag("equal", report.equal()).number("compared", report.compared);
  json.number("elements", report.elements).number("bytes", report.bytes);
  json.texts("missing_left", report.missing_left).texts("missing_right", report.missing_right);
  json.number("shape_mismatches", counts.shapes).number("dtype_mismatches", counts.dtypes);
  json.number("differing_elements", report.differing).real("max_delta", report.max_delta);
  json.key("differences").open_list();
  for (const TensorDifference& difference : report.differences) {
    json.open_object().text("tensor", difference.left.name);
    write_desc(json, "left", difference.left);
    write_desc(json, "right", difference.right);
    json.number("differing", difference.differing);
    write_dims(json, "first", difference.first);
    json.real("max_delta", difference.max_delta).close();
  }
  json.close().texts("settings", report.settings).texts("notes", report.notes).close();
  return json.take();
}

}  // namespace

Result<int> run(const DiffCommand& command, Console& console) {
  WatchedRun watched(console);
  ProofOptions options = command.options;
  options.run = watched.options();
  const DiffReport report =
      SW_TRY(diff_checkpoints(command.left, command.right, options, command.tolerance));
  if (!SW_TRY(watched.may_tell([&] { return diff_report_json(report); }))) return kExitFine;
  for (const std::string& note : report.notes) console.note(note);
  console.print(command.json ? diff_report_json(report) : diff_report_text(report, command.stat));
  return report.equal() ? kExitFine : kExitFindings;
}

}  // namespace shardwright::cli
