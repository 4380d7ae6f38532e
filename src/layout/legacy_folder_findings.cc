// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

std::string comma_list(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  }
  return text;
}

std::string shard_text(const LegacyRank& rank, const ParallelConfig& config) {
  std::string text = fmt::format("(tp={}", rank.tensor);
  if (config.pipeline > 1) text += fmt::format(",pp={}", rank.pipeline);
  if (config.expert > 1) text += fmt::format(",ep={}", rank.expert);
  return text + ")";
}

// Those writers left something out where TP > ETP * EP, and a run without experts has ETP = TP
// unless it was told another one.
bool may_be_of_old_writer(const LegacyReading& reading, const ParallelConfig& config) {
  const std::optional<std::int64_t>& told = reading.run.sizes.expert_tensor;
  if (told) return config.tensor > *told * config.expert;
  return reading.has_experts || reading.place_of(Coordinate::kExpert).has_value();
}

void add_missing(const LegacyCoverage& coverage, const LegacyReading& reading,
                 const ParallelConfig& config, Diagnosis& diagnosis) {
  if (coverage.is_complete) {
    std::vector<std::string> asked = coverage.unwritten;
    for (const std::string& name : diagnosis.missing) asked.push_back(name);
    if (asked.empty() || !reading.sizes.expert_tensor) return;
    std::ranges::sort(asked);
    add_finding(diagnosis, "L31",
                {{"tp", config.tensor},
                 {"ep", config.expert},
                 {"etp", config.expert_tensor},
                 {"name", asked.front()}});
    return;
  }
  const bool is_of_old_writer = coverage.by_old_writer && may_be_of_old_writer(reading, config);
  if (is_of_old_writer && !coverage.lost_tensors.empty()) {
    return add_finding(diagnosis, "L07", {{"ranks", comma_list(coverage.lost_tensors)}});
  }
  add_finding(diagnosis, "L09",
              {{"shard", shard_text(coverage.missing.front(), config)},
               {"found", reading.groups.models.size() - coverage.unexpected.size()},
               {"expected", coverage.written}});
}

void add_grid_findings(const LegacyReading& reading, const ParallelConfig& config,
                       Diagnosis& diagnosis) {
  if (config.tensor % config.expert_tensor != 0) {
    const std::string_view relation = config.expert_tensor > config.tensor ? ">" : "∤";
    add_finding(diagnosis, "L08",
                {{"etp", config.expert_tensor}, {"relation", relation}, {"tp", config.tensor}});
    diagnosis.complete = false;
    return;
  }
  const std::set<std::string> names = reading.model_names();
  const auto coverage = legacy_coverage(names, config, reading.naming, reading.encoders);
  if (!coverage) return;
  for (const LegacyRank& rank : coverage->missing) {
    diagnosis.missing.push_back(rank_folder_name(rank, config, reading.naming));
  }
  // A rank with an empty folder counts as missing.
  std::erase_if(diagnosis.unexpected, [&](const std::string& name) {
    return std::ranges::find(diagnosis.missing, name) != diagnosis.missing.end();
  });
  diagnosis.unexpected.insert(diagnosis.unexpected.end(), coverage->unexpected.begin(),
                              coverage->unexpected.end());
  diagnosis.complete = coverage->is_complete;
  const std::int64_t product = config.tensor * config.expert;
  const auto pairs = static_cast<std::int64_t>(coverage->asked);
  const bool knows_grid = reading.sizes.expert_tensor.has_value();
  if (knows_grid && pairs < product) {
    add_finding(diagnosis, "L06",
                {{"etp", config.expert_tensor},
                 {"tp", config.tensor},
                 {"count", pairs},
                 {"product", product}});
  }
  add_missing(*coverage, reading, config, diagnosis);
  if (!coverage->unexpected.empty()) {
    const std::string& first = coverage->unexpected.front();
    const std::size_t count = coverage->unexpected.size();
    add_finding(diagnosis, "L27",
                {{"first", fmt::format("TP/PP/EP/ETP = {}", sizes_text(reading.sizes))},
                 {"second", phrase("folders.beyond", {{"first", first}, {"count", count}})}});
  }
}

// Dense or data-parallel copies: every tensor rank of every stage, whatever the further number.
void add_copy_findings(const LegacyReading& reading, Diagnosis& diagnosis) {
  const auto stage = reading.place_of(Coordinate::kPipeline);
  std::set<std::pair<std::int64_t, std::int64_t>> held;
  for (const NumberedFolder& folder : reading.groups.models) {
    held.emplace(stage ? folder.numbers[*stage] : 0, folder.numbers[0]);
  }
  const std::int64_t fewer =
      reading.encoders.count *
      std::max<std::int64_t>(*reading.sizes.tensor - reading.encoders.tensor, 0);
  const auto all =
      static_cast<std::size_t>(*reading.sizes.tensor * *reading.sizes.pipeline - fewer);
  diagnosis.complete = held.size() == all;
  for (std::int64_t p = 0; p < *reading.sizes.pipeline; ++p) {
    for (std::int64_t t = 0; t < *reading.sizes.tensor; ++t) {
      if (held.contains({p, t}) || reading.encoders.lack({t, p, 0, 0})) continue;
      return add_finding(diagnosis, "L09",
                         {{"shard", fmt::format("(tp={},pp={})", t, p)},
                          {"found", held.size()},
                          {"expected", all}});
    }
  }
}

// Samples of one save agree in iteration and sizes.
void add_stale_samples(const LegacyReading& reading, Diagnosis& diagnosis) {
  std::map<std::string, std::string> saves;  // what a save says, and the first folder that says it
  for (const PlacedSample& placed : reading.samples) {
    const RankSample& sample = *placed.sample;
    if (!sample.iteration && !sample.run.is_present) continue;
    const std::string iteration =
        sample.iteration ? fmt::format("iteration {}", *sample.iteration) : "iteration -";
    saves.try_emplace(fmt::format("{}, TP/PP/EP/ETP = {}", iteration, sizes_text(sample.run.sizes)),
                      sample.folder);
  }
  if (saves.size() < 2) return;
  const auto text = [](const auto& save) {
    return fmt::format("{} ({})", save.second, save.first);
  };
  add_finding(diagnosis, "L27",
              {{"first", text(*saves.begin())}, {"second", text(*std::next(saves.begin()))}});
}

void add_recorded_findings(const LegacyReading& reading, Diagnosis& diagnosis) {
  const AxisSizes& recorded = reading.run.sizes;
  if (!reading.run.is_present || !recorded.tensor || reading.place_of(Coordinate::kData)) return;
  const std::int64_t pp = reading.encoders.with_decoder(recorded.pipeline.value_or(1)).value_or(1);
  const std::int64_t ep = recorded.expert.value_or(1);
  const ParallelConfig config{*recorded.tensor, pp, 1, ep, *recorded.tensor};
  const std::string expected = rank_folder_pattern(config, RankNaming::kMegatron);
  if (reading.naming == RankNaming::kTpPpEp && ep > 1 && pp == 1) return;
  const bool fits = expected == diagnosis.disk_pattern && !reading.contradicts_arguments;
  if (fits) return;
  add_finding(diagnosis, "L30",
              {{"recorded", sizes_text(recorded)},
               {"expected", expected},
               {"disk", diagnosis.disk_pattern}});
}

}  // namespace

void add_folder_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                         Diagnosis& diagnosis) {
  const auto config = reading.config();
  for (const std::string& name : reading.groups.others) diagnosis.unexpected.push_back(name);
  if (reading.place_of(Coordinate::kData) && reading.sizes.tensor && reading.sizes.pipeline) {
    add_copy_findings(reading, diagnosis);
  } else if (config) {
    add_grid_findings(reading, *config, diagnosis);
  }
  add_stale_samples(reading, diagnosis);
  add_recorded_findings(reading, diagnosis);
  if (reading.naming == RankNaming::kTpPpEp) {
    add_finding(diagnosis, "L36",
                {{"expected", config ? rank_folder_pattern(*config, RankNaming::kMegatron) : "-"}});
  }
  for (const std::string& name : evidence.leftovers) {
    add_finding(diagnosis, "L28", {{"name", name}});
  }
}

}  // namespace shardwright
