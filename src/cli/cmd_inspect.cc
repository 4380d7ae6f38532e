// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "base/glob.h"
#include "base/text.h"
#include "cli/code_label.h"
#include "cli/commands.h"
#include "cli/file_report.h"
#include "cli/json_output.h"
#include "cli/pickle_warnings.h"
#include "cli/quantity.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "cli/tensor_tree.h"
#include "dcp/torch_obstacles.h"
#include "format/adapter_note.h"
#include "format/lone_file.h"
#include "remote/open_path.h"

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
    text += translated(" ({} of the optimizer)", format_count(summary.optimizer_tensors));
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
       translated("{} of {} and {} in {}", format_count(summary.chunks, "chunk"),
                  format_bytes(summary.chunk_bytes), format_count(summary.objects, "object"),
                  format_count(summary.files, "file"))});
}

// How many of so many lines are shown: who names tensors wants them all.
std::size_t shown_lines(const InspectCommand& command, std::size_t lines) {
  constexpr std::int64_t kMostUnasked = 100;
  if (!command.limit && !command.tensors.empty()) return lines;
  return std::min(lines, static_cast<std::size_t>(command.limit.value_or(kMostUnasked)));
}

std::string more_tensors_text(std::size_t more) {
  if (more == 0) return "";
  return translated(
      "… {} more; --tree shows their modules, --tensors GLOB some, --limit N more of them, --json "
      "all\n",
      format_count(more));
}

std::string tensor_table(const Catalog& catalog, const InspectCommand& command) {
  std::vector<std::size_t> listed = matching_tensors(catalog, command.tensors);
  if (command.tree) return tensor_tree_text(catalog, listed, command.depth.value_or(0));
  const std::size_t more = listed.size() - shown_lines(command, listed.size());
  listed.resize(listed.size() - more);
  const bool has_replicas = std::ranges::any_of(
      listed, [&](std::size_t index) { return replicas_of(catalog.tensors[index]) > 1; });
  std::vector<Table::Column> columns{
      {"tensor"}, {"dtype"}, {"shape"}, {"chunks", Table::Align::kRight}};
  if (has_replicas) columns.push_back({"replicas", Table::Align::kRight});
  Table table(std::move(columns));
  for (const std::size_t index : listed) {
    const StoredTensor& tensor = catalog.tensors[index];
    std::vector<std::string> row{tensor.desc.name, std::string(torch_name(tensor.desc.dtype)),
                                 to_string(tensor.desc.shape), format_count(tensor.chunks.size())};
    if (has_replicas) row.push_back(format_count(replicas_of(tensor)));
    table.add_row(std::move(row));
  }
  if (table.row_count() == 0) return "";
  return table.text() + more_tensors_text(more);
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
         (more > 0 ? translated("… {} more, shown by --json\n", format_count(more)) : "");
}

// Of a single file: its pieces of tensors.
std::string chunk_table(const Catalog& catalog, const InspectCommand& command) {
  std::vector<std::size_t> listed = matching_tensors(catalog, command.tensors);
  if (command.tree) return tensor_tree_text(catalog, listed, command.depth.value_or(0));
  const std::size_t more = listed.size() - shown_lines(command, listed.size());
  listed.resize(listed.size() - more);
  Table table({{"tensor"},
               {"dtype"},
               {"shape"},
               {"box"},
               {"offset", Table::Align::kRight},
               {"bytes", Table::Align::kRight}});
  for (const std::size_t index : listed) {
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
  if (table.row_count() == 0) return "";
  return table.text() + more_tensors_text(more);
}

std::string checkpoint_text(const Checkpoint& checkpoint, const InspectCommand& command) {
  const Location& location = checkpoint.location;
  Table facts({{}, {}});
  facts.add_row({"format", fmt::format("{}: {}", location.format, joined(location.reasons))});
  if (location.iteration) facts.add_row({"iteration", std::to_string(*location.iteration)});
  add_summary(checkpoint.catalog, facts);
  const std::string layout = facts_text(layout_facts(checkpoint));
  if (!layout.empty()) facts.add_row({"saved with", layout});
  const std::string model = facts_text(model_facts(checkpoint));
  if (!model.empty()) facts.add_row({"model", model});
  return facts.text(2) + "\n" + tensor_table(checkpoint.catalog, command) +
         (command.tensors.empty() && !command.tree ? object_table(checkpoint.catalog) : "");
}

std::string file_text(const FileReport& report, const InspectCommand& command) {
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
  return facts.text(2) + "\n" + chunk_table(report.catalog, command) +
         (command.tensors.empty() && !command.tree ? object_table(report.catalog) : "");
}

// A name that was mistyped must not look like a checkpoint without tensors.
int status_of_globs(const InspectCommand& command, const Catalog& catalog, Console& console) {
  std::vector<std::string_view> names;
  for (const StoredTensor& tensor : catalog.tensors) names.push_back(tensor.desc.name);
  const Status status = check_globs("--tensors", command.tensors, names);
  if (!status) console.message(status.error().message);
  return status ? kExitFine : kExitFindings;
}

}  // namespace

Result<int> run(const InspectCommand& command, Console& console) {
  // What is no plain file is for the readers of checkpoints to name.
  if (command.as.empty() && is_file(command.path) && !is_lone_archive(command.path)) {
    const FileReport report = SW_TRY(inspect_file(
        command.path, TreeLimits{command.depth.value_or(4), command.limit.value_or(1000)}));
    console.print(command.json ? file_json(report, command.tensors)
                               : heading(report.path, console) + file_text(report, command) +
                                     warnings_text(report.warnings, console.language()));
    if (!report.warnings.errors.empty()) return kExitFindings;
    return report.values.empty() ? status_of_globs(command, report.catalog, console) : kExitFine;
  }
  Defects defects(Defects::Policy::kCollect);
  Checkpoint checkpoint = SW_TRY(open_checkpoint(command.path, defects, FormatChoice{command.as}));
  PickleWarnings warnings;
  for (const Error& error : defects.found()) {
    if (error.code != Code::kPickleRunsCode) return std::unexpected(error);
    warnings.errors.push_back(error);
  }
  warnings.add(audit_pickles(checkpoint));
  for (std::string& note : checkpoint.notes) warnings.notes.push_back(std::move(note));
  if (auto note = adapter_note(checkpoint)) warnings.notes.push_back(*std::move(note));
  for (const std::string& obstacle : torch_obstacles(checkpoint)) {
    warnings.others.push_back({Code::kUnloadable, unloadable_text(obstacle), 0});
  }
  console.print(command.json ? checkpoint_json(checkpoint, command.tensors, warnings)
                             : heading(checkpoint.location.path, console) +
                                   checkpoint_text(checkpoint, command) +
                                   warnings_text(warnings, console.language()));
  for (const Error& warning : warnings.others) {
    console.message(fmt::format("{}: {}", code_label("warning", warning.code, console.language()),
                                warning.message));
  }
  if (!warnings.errors.empty()) return kExitFindings;
  return status_of_globs(command, checkpoint.catalog, console);
}

}  // namespace shardwright::cli
