// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/fail.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "dcp/rank_metadata.h"
#include "layout/load_plan.h"
#include "layout/rank_order.h"
#include "plan/canonical.h"
#include "shardwright/checkpoint.h"

namespace shardwright::cli {
namespace {

// A plan's counts over all ranks.
struct RuleTotals {
  std::uint64_t opens = 0;
  std::uint64_t foreign_opens = 0;
  std::uint64_t foreign_bytes = 0;
  std::uint64_t max_rank_bytes = 0;
  std::uint64_t min_rank_bytes = 0;
  std::uint64_t sent_bytes = 0;
};

struct ObjectTotals {
  std::uint64_t opens = 0;
  std::uint64_t foreign_opens = 0;
  std::uint64_t bytes = 0;
};

struct LocalityReport {
  std::uint64_t ranks = 0;
  std::uint64_t tensors = 0;
  std::array<RuleTotals, kLoadRules.size()> rules;
  std::uint64_t metadata_bytes = 0;
  ObjectTotals objects;
  std::vector<std::string> notes;
};

// How often a rank of Megatron-Core opens `.metadata` for one load; PR 3392 looks for the writers
// in it twice more.
constexpr std::uint64_t metadata_opens(LoadRule rule) { return rule == LoadRule::kPerName ? 4 : 2; }

RuleTotals totals_of(const LoadPlan& plan) {
  RuleTotals totals;
  totals.min_rank_bytes = plan.ranks.front().bytes;
  for (const RankLoad& rank : plan.ranks) {
    totals.opens += rank.opens;
    totals.foreign_opens += rank.foreign_opens;
    totals.foreign_bytes += rank.foreign_bytes;
    totals.sent_bytes += rank.sent_bytes;
    totals.max_rank_bytes = std::max(totals.max_rank_bytes, rank.bytes);
    totals.min_rank_bytes = std::min(totals.min_rank_bytes, rank.bytes);
  }
  return totals;
}

ObjectTotals object_totals(const Catalog& catalog, const JobLayout& layout) {
  ObjectTotals totals;
  std::set<std::pair<std::int64_t, std::uint32_t>> opened;
  for (const StoredObject& object : catalog.objects) {
    const auto rank = layout.rank_of_object(object.name);
    if (!rank || object.name.starts_with("common_state/")) continue;
    totals.bytes += object.range.length;
    if (!opened.emplace(*rank, object.file).second) continue;
    ++totals.opens;
    if (rank_of_file(catalog.files[object.file]) != *rank) ++totals.foreign_opens;
  }
  return totals;
}

Status check_format(const Location& location) {
  const SourceTraits& traits = location.traits;
  if (traits.shares_by_name) return {};
  if (traits.has_chunk_list && traits.is_hf_model) {
    return fail(Code::kUnsupportedFormat,
                "{}: its tensors have Hugging Face's names, and only Megatron's say which rank "
                "loads them; make one of it with 'shardwright convert IN OUT --to torch_dist'",
                location.path);
  }
  return fail(Code::kUnsupportedFormat,
              "{}: found {}, expected torch_dist or dcp, whose files name the ranks that wrote "
              "them; make one of it with 'shardwright convert IN OUT --to torch_dist'",
              location.path, location.format);
}

// The tensors that the job loads.
Result<std::vector<std::uint32_t>> chosen_tensors(const LocalityCommand& command,
                                                  const Catalog& catalog,
                                                  std::vector<std::string>& notes) {
  std::vector<std::uint32_t> which;
  std::uint64_t left_out = 0;
  bool has_states = false;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string& name = catalog.tensors[i].desc.name;
    const bool is_state = is_optimizer_name(name);
    if (is_state && !command.optimizer) {
      ++left_out;
      continue;
    }
    if (is_state && name.find("optimizer.distributed.") != std::string::npos) {
      return fail(Code::kOptimizerUnsupported,
                  "tensor {}: optimizer states in buckets are read by the ranks that saved them, "
                  "not shared out; leave out --optimizer, or convert the checkpoint first",
                  name);
    }
    has_states = has_states || is_state;
    which.push_back(i);
  }
  if (command.optimizer && !has_states) {
    notes.push_back(translated("the checkpoint has no optimizer states"));
  }
  if (left_out > 0) {
    notes.push_back(translated("{} of the optimizer left out; --optimizer counts them too",
                               format_count(left_out, "tensor")));
  }
  if (which.empty()) {
    return fail(Code::kNothingStored, "no tensor in it is one that a job would load");
  }
  return which;
}

Result<LocalityReport> report_on(const LocalityCommand& command) {
  const Checkpoint checkpoint = SW_TRY(open_checkpoint(command.path, FormatChoice{command.as}));
  SW_TRY(check_format(checkpoint.location));
  const Catalog& catalog = checkpoint.catalog;
  LocalityReport report;
  report.notes = checkpoint.notes;
  const auto which = SW_TRY(chosen_tensors(command, catalog, report.notes));
  const JobLayout layout =
      SW_TRY(JobLayout::make(descs_of(catalog), command.parallel, command.data));
  const LoadNeeds needs = SW_TRY(needs_of(catalog, which, layout));
  const auto plans = plan_loads(needs);
  std::ranges::transform(plans, report.rules.begin(), totals_of);
  report.ranks = static_cast<std::uint64_t>(layout.world_size());
  report.tensors = which.size();
  report.objects = object_totals(catalog, layout);
  if (checkpoint.directory->exists(kDcpMetadata)) {
    report.metadata_bytes = SW_TRY(checkpoint.directory->open(kDcpMetadata))->size();
  }
  return report;
}

std::string locality_report_json(const LocalityReport& report) {
  JsonWriter json;
  begin_document(json, "locality");
  json.number("ranks", report.ranks).number("tensors", report.tensors);
  json.key("rules").open_object();
  for (std::size_t i = 0; i < kLoadRules.size(); ++i) {
    const RuleTotals& totals = report.rules[i];
    json.key(to_string(kLoadRules[i])).open_object();
    json.number("opens", totals.opens).number("foreign_opens", totals.foreign_opens);
    json.number("foreign_bytes", totals.foreign_bytes);
    json.number("max_rank_bytes", totals.max_rank_bytes);
    json.number("min_rank_bytes", totals.min_rank_bytes);
    json.number("sent_bytes", totals.sent_bytes).close();
  }
  json.close().key("metadata").open_object();
  json.number("bytes", report.metadata_bytes).key("opens").open_object();
  for (const LoadRule rule : kLoadRules) {
    json.number(to_string(rule), report.ranks * metadata_opens(rule));
  }
  json.close().close().key("objects").open_object();
  json.number("opens", report.objects.opens);
  json.number("foreign_opens", report.objects.foreign_opens);
  json.number("bytes", report.objects.bytes).close();
  json.texts("notes", report.notes).close();
  return json.take();
}

std::string locality_report_text(const LocalityReport& report) {
  using enum Table::Align;
  Table table({{"rule"},
               {"opens", kRight},
               {"foreign opens", kRight},
               {"foreign bytes", kRight},
               {"most by a rank", kRight},
               {"least by a rank", kRight},
               {"sent bytes", kRight}});
  std::string metadata;
  for (std::size_t i = 0; i < kLoadRules.size(); ++i) {
    const RuleTotals& totals = report.rules[i];
    const std::string_view name = to_string(kLoadRules[i]);
    table.add_row({std::string(name), format_count(totals.opens),
                   format_count(totals.foreign_opens), format_count(totals.foreign_bytes),
                   format_count(totals.max_rank_bytes), format_count(totals.min_rank_bytes),
                   format_count(totals.sent_bytes)});
    metadata += fmt::format("{}{} {}", i > 0 ? ", " : "", name,
                            format_count(report.ranks * metadata_opens(kLoadRules[i])));
  }
  return translated(
      "{}, {}\n{}\n.metadata ({}): opened by {}\nobjects ({}): {}, {} of them foreign\n",
      format_count(report.ranks, "rank"), format_count(report.tensors, "tensor"), table.text(),
      format_bytes(report.metadata_bytes), metadata, format_bytes(report.objects.bytes),
      format_count(report.objects.opens, "open"), format_count(report.objects.foreign_opens));
}

}  // namespace

Result<int> run(const LocalityCommand& command, Console& console) {
  const LocalityReport report = SW_TRY(report_on(command));
  for (const std::string& note : report.notes) console.note(note);
  console.print(command.json ? locality_report_json(report) : locality_report_text(report));
  return kExitFine;
}

}  // namespace shardwright::cli
