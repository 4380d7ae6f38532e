// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "base/fail.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/file_report.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/summary.h"
#include "cli/table.h"

namespace shardwright::cli {
namespace {

std::string heading(const std::string& path, const Console& console) {
  return console.bold(printable(path)) + "\n";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::string tensors_text(const CatalogSummary& summary) {
  std::string text = format_count(summary.tensors);
  if (summary.optimizer_tensors > 0) {
    text += fmt::format(" ({} of the optimizer)", format_count(summary.optimizer_tensors));
  }
  return text + fmt::format(", {}, {}", format_count(summary.elements, "element"),
                            format_bytes(summary.bytes));
}

std::string dtypes_text(const CatalogSummary& summary) {
  std::string text;
  for (const auto& [dtype, share] : summary.dtypes) {
    text += fmt::format("{}{} ({}, {})", text.empty() ? "" : ", ", torch_name(dtype),
                        format_count(share.tensors, "tensor"), format_bytes(share.bytes));
  }
  return text;
}

void add_summary(const Catalog& catalog, Table& facts) {
  const CatalogSummary summary = summarize(catalog);
  facts.add_row({"tensors", tensors_text(summary)});
  if (summary.tensors > 0) facts.add_row({"dtypes", dtypes_text(summary)});
  facts.add_row(
      {"stored",
       fmt::format("{} of {} and {} in {}", format_count(summary.chunks, "chunk"),
                   format_bytes(summary.chunk_bytes), format_count(summary.objects, "object"),
                   format_count(summary.files, "file"))});
}

std::string tensor_table(const Catalog& catalog, const std::vector<std::string>& globs) {
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"chunks", Table::Align::kRight}});
  for (const std::size_t index : matching_tensors(catalog, globs)) {
    const StoredTensor& tensor = catalog.tensors[index];
    table.add_row({tensor.desc.name, std::string(torch_name(tensor.desc.dtype)),
                   to_string(tensor.desc.shape), format_count(tensor.chunks.size())});
  }
  if (table.row_count() == 0) return catalog.tensors.empty() ? "" : "no tensor has such a name\n";
  return table.text();
}

std::string object_table(const Catalog& catalog) {
  constexpr std::size_t kMostShown = 20;
  if (catalog.objects.empty()) return "";
  Table table({{"object"}, {"bytes", Table::Align::kRight}, {"file"}});
  for (const StoredObject& object : catalog.objects) {
    if (table.row_count() == kMostShown) break;
    table.add_row({object.name, format_count(object.range.length), catalog.files[object.file]});
  }
  const std::size_t more = catalog.objects.size() - table.row_count();
  return "\n" + table.text() +
         (more > 0 ? fmt::format("… {} more, shown by --json\n", format_count(more)) : "");
}

// Of a single file: its pieces of tensors.
std::string chunk_table(const Catalog& catalog, const std::vector<std::string>& globs) {
  Table table({{"tensor"},
               {"dtype"},
               {"shape"},
               {"box"},
               {"offset", Table::Align::kRight},
               {"bytes", Table::Align::kRight}});
  for (const std::size_t index : matching_tensors(catalog, globs)) {
    const StoredTensor& tensor = catalog.tensors[index];
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const bool is_whole = tensor.chunks.box(i) == Box::whole(tensor.desc.shape);
      table.add_row({tensor.desc.name, std::string(torch_name(tensor.desc.dtype)),
                     to_string(tensor.desc.shape),
                     is_whole ? "whole" : to_string(tensor.chunks.box(i)),
                     format_count(tensor.chunks.range(i).offset),
                     format_count(tensor.chunks.range(i).length)});
    }
  }
  if (table.row_count() == 0) return catalog.tensors.empty() ? "" : "no tensor has such a name\n";
  return table.text();
}

std::string checkpoint_text(const Checkpoint& checkpoint, const std::vector<std::string>& globs) {
  const Location& location = checkpoint.location;
  Table facts({{}, {}});
  facts.add_row({"format", fmt::format("{}: {}", container_name(location.container),
                                       joined(location.reasons))});
  if (location.iteration) facts.add_row({"iteration", std::to_string(*location.iteration)});
  add_summary(checkpoint.catalog, facts);
  const std::string layout = facts_text(layout_facts(checkpoint));
  if (!layout.empty()) facts.add_row({"saved with", layout});
  const std::string model = facts_text(model_facts(checkpoint));
  if (!model.empty()) facts.add_row({"model", model});
  return facts.text(2) + "\n" + tensor_table(checkpoint.catalog, globs) +
         (globs.empty() ? object_table(checkpoint.catalog) : "");
}

std::string file_text(const FileReport& report, const std::vector<std::string>& globs) {
  Table facts({{}, {}});
  facts.add_row({"format", fmt::format("{}: {}", report.kind, report.reason)});
  facts.add_row({"size", format_count(report.bytes, "byte")});
  for (const auto& [name, value] : report.facts) facts.add_row({name, value});
  if (!report.values.empty()) {
    std::string text =
        facts.text(2) + "\nvalues, read without running anything (globals are only names):\n";
    for (const ValueNode& value : report.values) text += tree_text(value);
    return text;
  }
  add_summary(report.catalog, facts);
  return facts.text(2) + "\n" + chunk_table(report.catalog, globs) +
         (globs.empty() ? object_table(report.catalog) : "");
}

}  // namespace

Result<int> run_inspect(const InspectCommand& command, Console& console) {
  std::error_code ignored;
  // What is no plain file is for the readers of checkpoints to name.
  if (std::filesystem::is_regular_file(command.path, ignored)) {
    const FileReport report =
        SW_TRY(inspect_file(command.path, TreeLimits{command.depth, command.limit}));
    console.print(command.json
                      ? file_json(report, command.tensors)
                      : heading(report.path, console) + file_text(report, command.tensors));
    return kExitFine;
  }
  const Checkpoint checkpoint = SW_TRY(open_checkpoint(command.path));
  console.print(command.json ? checkpoint_json(checkpoint, command.tensors)
                             : heading(checkpoint.location.path, console) +
                                   checkpoint_text(checkpoint, command.tensors));
  return kExitFine;
}

}  // namespace shardwright::cli
