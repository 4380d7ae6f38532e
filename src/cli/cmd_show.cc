// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "cli/watched_run.h"

namespace shardwright::cli {
namespace {

std::string number_text(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : "-";
}

std::string table_of_chunks(const TensorReport& report) {
  Table table({{"chunk"},
               {"file"},
               {"offset", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"strides"}});
  for (std::size_t i = 0; i < report.chunks.size(); ++i) {
    const Chunk& chunk = report.chunks[i];
    table.add_row({to_string(chunk.box), report.files[i], format_count(chunk.range.offset),
                   format_count(chunk.range.length),
                   chunk.strides.empty() ? "row-major" : to_string(chunk.strides)});
  }
  return table.text();
}

std::string show_report_text(const TensorReport& report, const Console& console) {
  Table facts({{}, {}});
  facts.add_row({"dtype", std::string(torch_name(report.desc.dtype))});
  facts.add_row({"shape", to_string(report.desc.shape)});
  if (report.stored != report.desc.name) facts.add_row({"stored in", report.stored});
  std::string values;
  for (const std::string& value : report.values) values += (values.empty() ? "" : ", ") + value;
  if (report.elements > report.values.size()) values += ", …";
  facts.add_row({"values", values});
  facts.add_row(
      {"min, max", fmt::format("{}, {}", number_text(report.least), number_text(report.greatest))});
  facts.add_row({"mean, std",
                 fmt::format("{}, {}", number_text(report.mean), number_text(report.deviation))});
  facts.add_row(
      {"counts", fmt::format("{}, {} NaN, {} Inf, {} zero",
                             format_count(report.elements, "element"), format_count(report.nan),
                             format_count(report.infinite), format_count(report.zero))});
  return console.bold(printable(report.desc.name)) + "\n" + facts.text(2) + "\n" +
         table_of_chunks(report);
}

void write_statistic(JsonWriter& json, std::string_view key, std::optional<double> value) {
  json.key(key);
  if (value) {
    json.real(*value);
  } else {
    json.null();
  }
}

std::string show_report_json(const TensorReport& report) {
  JsonWriter json;
  begin_document(json, "show");
  json.text("tensor", report.desc.name).text("stored_in", report.stored);
  json.text("dtype", torch_name(report.desc.dtype));
  write_dims(json, "shape", report.desc.shape);
  json.key("chunks").open_list();
  for (std::size_t i = 0; i < report.chunks.size(); ++i) {
    const Chunk& chunk = report.chunks[i];
    json.open_object();
    write_dims(json, "origin", chunk.box.origin);
    write_dims(json, "shape", chunk.box.shape);
    json.text("file", report.files[i]).number("offset", chunk.range.offset);
    json.number("bytes", chunk.range.length).close();
  }
  json.close().key("values").open_row();
  for (const std::string& value : report.values) json.number_text(value);
  json.close().number("elements", report.elements).number("nan", report.nan);
  json.number("inf", report.infinite).number("zero", report.zero);
  write_statistic(json, "min", report.least);
  write_statistic(json, "max", report.greatest);
  write_statistic(json, "mean", report.mean);
  write_statistic(json, "std", report.deviation);
  json.close();
  return json.take();
}

}  // namespace

Result<int> run(const ShowCommand& command, Console& console) {
  WatchedRun watched(console);
  ProofOptions options = command.options;
  options.run = watched.options();
  const TensorReport report = SW_TRY(show_tensor(command.path, command.tensor, options));
  for (const std::string& note : report.notes) console.note(note);
  console.print(command.json ? show_report_json(report) : show_report_text(report, console));
  return kExitFine;
}

}  // namespace shardwright::cli
