// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/shell_path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/html_output.h"
#include "cli/json_output.h"
#include "cli/name_pattern.h"
#include "cli/named_output.h"
#include "cli/quantity.h"
#include "cli/rank_map.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "convert/conversion_output.h"
#include "format/targets.h"
#include "io/replace_file.h"
#include "report/report.h"

namespace shardwright::cli {
namespace {

std::string output_text(const ConvertRequest& request) {
  std::string text = fmt::format("{} ({}", request.output, target_text(request));
  if (request.data_ranks) text += translated(", for DP {}", *request.data_ranks);
  if (request.tp_replicas == TpReplicas::kExpand)
    text += translated(", a copy for each tensor rank");
  return text + ")";
}

std::string disk_text(const PlanCost& cost, std::optional<std::uint64_t> free_bytes) {
  std::string text = translated("{} needed", format_bytes(cost.bytes_written));
  if (free_bytes) text += translated(", {} free", format_bytes(*free_bytes));
  return text;
}

std::string replaced_text(const ReplacedOutput& replaced) {
  std::string text = name_list(replaced.entries);
  if (replaced.keeps_others) text += translated("; the other entries of OUT stay");
  return text;
}

std::string overview(const PreparedConversion& conversion, const ReplacedOutput& replaced,
                     std::optional<std::uint64_t> free_bytes) {
  const PlanCost cost = cost_of(conversion.plan);
  const Location& location = conversion.source.location;
  Table table({{}, {}});
  table.add_row({"source", fmt::format("{} ({})", location.path, location.format)});
  table.add_row({"target", output_text(conversion.request)});
  if (!conversion.family.empty()) table.add_row({"family", conversion.family});
  table.add_row({"read", translated("{} from {}", format_bytes(cost.payload_bytes_read),
                                    format_count(cost.source_files, "file"))});
  if (conversion.replicas.chunks > 0) {
    table.add_row({"compare", translated("{} of {}", format_bytes(conversion.replicas.bytes),
                                         format_count(conversion.replicas.chunks, "replica"))});
  }
  if (conversion.checks_master_weights) {
    table.add_row({"prove", translated("{} of weights and master weights",
                                       format_bytes(conversion.master_weight_bytes))});
  }
  table.add_row({"write", translated("{} to {}", format_bytes(cost.bytes_written),
                                     format_count(cost.target_files, "file"))});
  if (const auto guards = guard_paths(conversion); !guards.empty()) {
    table.add_row({"digests", name_list(guards)});
  }
  if (!replaced.entries.empty()) table.add_row({"replace", replaced_text(replaced)});
  table.add_row({"disk", disk_text(cost, free_bytes)});
  if (conversion.peak_memory_bytes > 0) {
    table.add_row(
        {"memory", translated("at most {}", format_memory(conversion.peak_memory_bytes))});
  }
  if (conversion.components.empty()) return table.text();
  constexpr std::int64_t kMostRanksShown = 64;
  std::int64_t ranks = 0;
  for (const ComponentRanks& component : conversion.components) ranks += component.ranks();
  return table.text() + "\n" + rank_map_text(conversion.components, ranks <= kMostRanksShown);
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes)
    text += fmt::format("note: {}\n", printable(in_language(note)));
  return text.empty() ? "" : "\n" + text;
}

bool keeps_its_name(const RenamedTensor& rename) {
  return rename.source.size() == 1 && rename.source.front() == rename.target;
}

void add_rename(const std::vector<std::string>& source, const std::vector<std::string>& target,
                Table& table) {
  for (std::size_t i = 0; i < std::max(source.size(), target.size()); ++i) {
    const std::string made = i == 0 ? "(new)" : "";
    table.add_row({i < source.size() ? source[i] : made, i < target.size() ? target[i] : ""});
  }
}

std::string renames_text(const std::vector<RenamedTensor>& all, bool verbose) {
  std::vector<const RenamedTensor*> renames;
  for (const RenamedTensor& rename : all) {
    if (!keeps_its_name(rename)) renames.push_back(&rename);
  }
  Table table({{"source"}, {"target"}});
  if (verbose) {
    for (const RenamedTensor* rename : renames) {
      add_rename(rename->source, {rename->target}, table);
    }
  } else {
    for (const RenamePattern& pattern : rename_patterns(renames)) {
      add_rename(pattern.source, pattern.target, table);
    }
  }
  std::string text = table.row_count() > 0 ? "\n" + table.text() : "";
  const std::size_t same = all.size() - renames.size();
  if (same > 0) {
    text += fmt::format("\n{} {}\n", format_count(same, "tensor"),
                        same == 1 ? "keeps its name" : "keep their names");
  }
  return text;
}

struct PlacedChunk {
  std::uint32_t file;
  std::uint64_t offset;
  std::size_t tensor;
  std::size_t chunk;
};

std::string chunks_text(const Plan& plan) {
  std::vector<PlacedChunk> placed;
  for (std::size_t t = 0; t < plan.target.tensors.size(); ++t) {
    const ChunkList& chunks = plan.target.tensors[t].chunks;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      placed.push_back({chunks.file(c), chunks.range(c).offset, t, c});
    }
  }
  std::sort(placed.begin(), placed.end(), [](const PlacedChunk& a, const PlacedChunk& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  Table table({{"file"},
               {"offset", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"tensor"},
               {"box"}});
  for (const PlacedChunk& place : placed) {
    const StoredTensor& tensor = plan.target.tensors[place.tensor];
    const Chunk chunk = tensor.chunks[place.chunk];
    table.add_row({plan.target.files[place.file], format_count(place.offset),
                   format_count(chunk.range.length), tensor.desc.name, to_string(chunk.box)});
  }
  return "\n" + table.text();
}

// A plan lies apart from what it makes, and takes the place of nothing but another plan.
Status check_plan_place(const std::string& path, const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  const fs::path target = fs::weakly_canonical(fs::absolute(output, error), error);
  const fs::path inside = place.lexically_relative(target);
  if (!inside.empty() && *inside.begin() != "..") {
    return fail(Code::kUsage, "--save {}: that is in OUT; choose a path beside it",
                printable(path));
  }
  constexpr std::string_view kBegin = R"({
 "schema": "shardwright/saved-plan/)";
  SW_TRY(check_named_output("--save", path,
                            [&](std::string_view text) { return text.starts_with(kBegin); }));
  return {};
}

Status save_to(const std::string& path, const PreparedConversion& conversion) {
  const SavedPlan plan = SW_TRY(save_plan(conversion));
  return replace_file(path, plan_file_text(plan));
}

std::string saved_text(const std::string& path) {
  const std::string file = shell_path(path);
  return translated(
      "\nsaved {}: run 'shardwright convert --plan {} --part I/N' for each I from 1 to N, then "
      "'shardwright publish {}'\n",
      printable(path), file, file);
}

}  // namespace

Result<int> run(const PlanCommand& command, Console& console) {
  if (!command.html.empty()) {
    SW_TRY(check_page_place("--html", command.html, command.request.overwrite));
  }
  if (!command.save.empty()) {
    SW_TRY(check_plan_place(command.save, command.request.output));
  }
  ConvertRequest request = command.request;
  if (!command.save.empty()) request = SW_TRY(with_absolute_paths(std::move(request)));
  const PreparedConversion conversion = SW_TRY(prepare_with_progress(request, console));
  const ReplacedOutput replaced = SW_TRY(replaced_output(conversion));
  const std::optional<std::uint64_t> free_bytes = free_bytes_at(command.request.output);
  if (!command.html.empty()) {
    SW_TRY(replace_file(command.html, plan_page(conversion, console.language())));
  }
  if (!command.save.empty()) SW_TRY(save_to(command.save, conversion));
  const bool fits = !free_bytes || cost_of(conversion.plan).bytes_written <= *free_bytes;
  if (command.json) {
    console.print(plan_json(conversion, replaced, free_bytes));
  } else {
    console.print(overview(conversion, replaced, free_bytes) + notes_text(conversion.notes) +
                  renames_text(conversion.renames, command.verbose) +
                  (command.verbose ? chunks_text(conversion.plan) : "") +
                  (command.save.empty() ? "" : saved_text(command.save)));
  }
  if (!fits) console.message(translated("the disk has not enough free space for this"));
  return fits ? kExitFine : kExitFindings;
}

}  // namespace shardwright::cli
