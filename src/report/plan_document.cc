// SPDX-License-Identifier: Apache-2.0
#include "report/plan_document.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "format/targets.h"
#include "plan/lower.h"
#include "plan/quantising.h"
#include "report/catalog_columns.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;
using Flows = std::map<std::pair<std::size_t, std::size_t>, std::uint64_t>;

// Bytes of elements that each holder of the target takes from each holder of the source.
Flows flows_of(const Plan& plan) {
  const Lowering lowering(plan);
  const Holders from = holders_of(plan.source.files);
  const Holders to = holders_of(plan.target.files);
  Flows flows;
  std::vector<SourcePiece> pieces;
  for (std::size_t i = 0; i < plan.target.tensors.size(); ++i) {
    const ChunkList& chunks = plan.target.tensors[i].chunks;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      pieces.clear();
      lowering.lower(i, made_region(plan.tensors[i], chunks.box(c)), pieces);
      for (const SourcePiece& piece : pieces) {
        flows[{from.of_file[piece.file], to.of_file[chunks.file(c)]}] +=
            static_cast<std::uint64_t>(piece.box.volume()) *
            static_cast<std::uint64_t>(bytes_of(piece.dtype)) /
            static_cast<std::uint64_t>(piece.per_byte);
      }
    }
  }
  return flows;
}

// The widest ones: a thousand ranks to a thousand others are a million flows.
Json flow_rows(const Flows& flows) {
  constexpr std::size_t kMostFlows = 50'000;
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, std::uint64_t>> rows(flows.begin(),
                                                                                  flows.end());
  if (rows.size() > kMostFlows) {
    std::ranges::stable_sort(rows, std::greater<>(), [](const auto& row) { return row.second; });
    rows.resize(kMostFlows);
  }
  Json json = Json::array();
  for (const auto& [ends, bytes] : rows) json.push_back({ends.first, ends.second, bytes});
  return json;
}

// By the numbers of the source's columns.
Json sources_of(const Plan& plan, const std::vector<std::size_t>& source_order,
                const std::vector<std::size_t>& target_order) {
  std::vector<std::size_t> shown(source_order.size());
  for (std::size_t i = 0; i < source_order.size(); ++i) shown[source_order[i]] = i;
  Json json = Json::array();
  for (const std::size_t target : target_order) {
    std::set<std::size_t> sources;
    for (const TensorView& view : plan.tensors[target].views) sources.insert(shown[view.source]);
    json.push_back(sources);
  }
  return json;
}

}  // namespace

Json plan_section(const PreparedConversion& conversion) {
  const Plan& plan = conversion.plan;
  const PlanCost cost = cost_of(plan);
  const std::vector<std::size_t> source_order = shown_order(plan.source);
  const std::vector<std::size_t> target_order = shown_order(plan.target);
  const ParallelConfig& parallel = conversion.request.parallel;
  const Flows flows = flows_of(plan);
  Json json;
  json["source"] = {{"path", conversion.source.location.path},
                    {"format", conversion.source.location.format}};
  json["target"] = {{"path", conversion.request.output},
                    {"format", traits_of(conversion.request.format).name}};
  json["target"]["sizes"] = Json::array();
  if (traits_of(conversion.request.format).has_grid) {
    json["target"]["sizes"] = Json::array(
        {Json::array({"TP", parallel.tensor}), Json::array({"PP", parallel.pipeline}),
         Json::array({"VPP", parallel.virtual_pipeline}), Json::array({"EP", parallel.expert}),
         Json::array({"ETP", parallel.expert_tensor})});
  }
  json["family"] = conversion.family;
  json["notes"] = conversion.notes;
  json["cost"] = {{"bytes_read", cost.payload_bytes_read},
                  {"bytes_written", cost.bytes_written},
                  {"source_files", cost.source_files},
                  {"target_files", cost.target_files},
                  {"peak_memory_bytes", conversion.peak_memory_bytes}};
  json["from"] = catalog_columns(plan.source, source_order);
  json["to"] = catalog_columns(plan.target, target_order);
  json["made_of"] = sources_of(plan, source_order, target_order);
  json["flows"] = flow_rows(flows);
  json["flow_count"] = flows.size();
  return json;
}

}  // namespace shardwright
