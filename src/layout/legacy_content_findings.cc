// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/misplaced_ranks.h"
#include "layout/recorded_words.h"
#include "layout/shard_rule.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

std::string list_text(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

// The optimizer's own folders, and models that have a data-parallel number themselves.
void add_data_coordinate(const LegacyReading& reading, Diagnosis& diagnosis) {
  if (reading.has_optimizer_ranks) {
    const NumberedFolder& folder = reading.groups.optimizers.front();
    const bool is_old = folder.file == "optim.pt";
    const Phrase writer = is_old ? phrase("writer.old_optimizer") : phrase("writer.aiak_optimizer");
    const bool is_last = folder.numbers.size() < 4;
    const Phrase place = is_last ? phrase("place.last") : phrase("place.third");
    return add_finding(diagnosis, "L10",
                       {{"place", place}, {"writer", writer}, {"file", folder.file}});
  }
  if (reading.place_of(Coordinate::kData)) {
    add_finding(diagnosis, "L10",
                {{"place", phrase("place.last")},
                 {"writer", phrase("writer.of_2022")},
                 {"file", reading.groups.models.front().file}});
  }
}

void add_file_names(const LegacyReading& reading, Diagnosis& diagnosis) {
  const auto& models = reading.groups.models;
  const auto other = std::ranges::find_if(
      models, [](const NumberedFolder& folder) { return folder.file != "model_optim_rng.pt"; });
  if (other == models.end()) return;
  const std::string& file = other->file;
  const bool is_of_old_optimizer =
      file == "model_rng.pt" && std::ranges::any_of(reading.groups.optimizers, [](const auto& f) {
        return f.file == "optim.pt";
      });
  if (!is_of_old_optimizer) add_finding(diagnosis, "L16", {{"file", file}});
}

// Layers of each stage, where a rank of each was read.
std::vector<std::int64_t> stage_layers(const LegacyReading& reading) {
  const auto place = reading.place_of(Coordinate::kPipeline);
  if (!place || !reading.sizes.pipeline) return {};
  std::map<std::int64_t, std::int64_t> layers;
  for (const PlacedSample& placed : reading.samples) {
    if (placed.numbers.size() <= *place) continue;
    if (placed.numbers[*place] < reading.encoders.count) continue;  // has none of the decoder's
    layers.emplace(placed.numbers[*place], placed.contents.layers);
  }
  const std::int64_t decoder = *reading.sizes.pipeline - reading.encoders.count;
  if (static_cast<std::int64_t>(layers.size()) != decoder) return {};
  std::vector<std::int64_t> counts;
  for (const auto& [stage, count] : layers) counts.push_back(count);
  return counts;
}

void add_pipeline_split(const LegacyReading& reading, Diagnosis& diagnosis) {
  const std::vector<std::int64_t> counts = stage_layers(reading);
  const auto stages = static_cast<std::int64_t>(counts.size());
  if (stages < 2 || std::ranges::max(counts) == std::ranges::min(counts)) return;
  std::int64_t layers = 0;
  for (const std::int64_t count : counts) layers += count;
  Phrase even = phrase("stages.uneven", {{"layers", layers}, {"stages", stages}});
  if (layers % stages == 0) {
    const std::string list = list_text(std::vector<std::int64_t>(counts.size(), layers / stages));
    even = {list, list};
  }
  add_finding(diagnosis, "L12", {{"counts", list_text(counts)}, {"even", even}});
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    if (counts[stage] == 0) add_finding(diagnosis, "L13", {{"stage", stage}});
  }
}

Phrase policy_phrase(PaddingPolicy policy) {
  switch (policy) {
    case PaddingPolicy::kZero:
      return phrase("padding.zero");
    case PaddingPolicy::kLastRow:
      return phrase("padding.last_row");
    case PaddingPolicy::kOther:
      return phrase("padding.other");
    case PaddingPolicy::kUnread:
      break;
  }
  return phrase("padding.unread");
}

struct VocabularyOnDisk {
  std::int64_t rows = 0;
  /// The embedding has more: Llama 3.2 Vision's has rows of its own behind those of its head.
  bool is_of_head = false;
};

std::optional<VocabularyOnDisk> vocabulary_on_disk(const LegacyReading& reading,
                                                   std::int64_t tokens) {
  std::optional<std::int64_t> table;
  std::optional<std::int64_t> head;
  for (const PlacedSample& placed : reading.samples) {
    if (!table) table = placed.contents.vocabulary_rows;
    if (!head) head = placed.contents.head_rows;
  }
  if (!table) return std::nullopt;
  const std::int64_t ranks = *reading.sizes.tensor;
  // A head for rewards or classes has fewer rows than there are tokens.
  const bool is_of_tokens = head && *head * ranks >= tokens && *head < *table;
  if (is_of_tokens) return VocabularyOnDisk{*head * ranks, true};
  return VocabularyOnDisk{*table * ranks, false};
}

void add_vocabulary(const LegacyEvidence& evidence, const LegacyReading& reading,
                    Diagnosis& diagnosis) {
  const RecordedRun& run = reading.run;
  if (!run.vocabulary || !run.vocabulary_divisor || *run.vocabulary < 1) return;
  const std::int64_t tp = evidence.believed.tensor.value_or(*reading.sizes.tensor);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (*run.vocabulary > kMost || *run.vocabulary_divisor < 1 ||
      *run.vocabulary_divisor > kMost / tp) {
    return;
  }
  const auto disk = vocabulary_on_disk(reading, *run.vocabulary);
  if (!disk) return;
  const std::int64_t words = words_of(run, disk->rows).value_or(*run.vocabulary);
  const std::int64_t required = padded_vocabulary(words, *run.vocabulary_divisor, tp);
  if (disk->rows == required) return;
  // It is the embedding's padding that was read.
  const PaddingPolicy policy = disk->is_of_head ? PaddingPolicy::kUnread : evidence.padding;
  add_finding(diagnosis, "L17",
              {{"disk", disk->rows},
               {"required", required},
               {"tp", tp},
               {"vocab", words},
               {"policy", policy_phrase(policy)}});
}

void add_experts(const LegacyReading& reading, Diagnosis& diagnosis) {
  if (!reading.experts || !reading.sizes.expert) return;
  const std::int64_t experts = *reading.experts;
  const std::int64_t ways = reading.run.has_own_expert_order ? *reading.sizes.tensor : 1;
  const std::int64_t ep = *reading.sizes.expert * ways;
  if (experts % ep != 0) {
    return add_finding(diagnosis, "L18", {{"experts", experts}, {"ep", ep}});
  }
  if (!reading.local_experts || *reading.local_experts * ep == experts) return;
  add_finding(diagnosis, "L33",
              {{"experts", experts},
               {"ep", ep},
               {"local", *reading.local_experts},
               {"held", *reading.local_experts * ep}});
  diagnosis.complete = false;
}

void add_components(const LegacyReading& reading, Diagnosis& diagnosis) {
  for (const PlacedSample& placed : reading.samples) {
    if (placed.contents.hyper_connection_head.empty()) continue;
    add_finding(diagnosis, "L24", {{"name", placed.contents.hyper_connection_head}});
    break;
  }
}

// Their tensor sizes, where they differ; by the arguments alone where no file tells.
void add_towers(const LegacyEvidence& evidence, const LegacyReading& reading,
                Diagnosis& diagnosis) {
  const std::int64_t tp = *reading.sizes.tensor;
  if (!evidence.towers_error.empty()) {
    return add_finding(diagnosis, "L39", {{"error", evidence.towers_error}});
  }
  if (!evidence.towers) {
    const std::int64_t told = reading.run.encoder_tensor.value_or(0);
    if (told > 0 && told != tp) add_finding(diagnosis, "L25", {{"encoder", told}, {"tp", tp}});
    return;
  }
  if (evidence.towers->empty()) return;
  AxisSizes language = reading.sizes;
  if (language.pipeline) *language.pipeline -= reading.encoders.count;
  diagnosis.components.push_back({.name = "language", .sizes = language});
  std::set<std::int64_t> sizes;
  for (const SettledTower& tower : *evidence.towers) {
    diagnosis.components.push_back({.name = tower.tower, .sizes = {.tensor = tower.size}});
    if (!sizes.insert(tower.size).second) continue;
    add_finding(diagnosis, "L25", {{"encoder", tower.size}, {"tp", tp}});
  }
}

void add_replicas(const LegacyEvidence& evidence, Diagnosis& diagnosis) {
  constexpr std::size_t kMostTold = 8;
  for (std::size_t i = 0; i < std::min(evidence.repeated.size(), kMostTold); ++i) {
    const RepeatedShard& shard = evidence.repeated[i];
    add_finding(diagnosis, "L20", {{"name", shard.tensor}, {"shape", shard.joined_shape}});
  }
  for (std::size_t i = 0; i < std::min(evidence.differing.size(), kMostTold); ++i) {
    const ReplicaVerdict& verdict = evidence.differing[i];
    add_finding(diagnosis, "L21",
                {{"name", verdict.tensor},
                 {"axis", fmt::format("{} ({}, {})", verdict.axis, verdict.first, verdict.second)},
                 {"count", verdict.differing},
                 {"offset", verdict.first_difference}});
  }
}

// Files of another save are told elsewhere (L27).
void add_misplaced(const LegacyReading& reading, Diagnosis& diagnosis) {
  const auto config = reading.config();
  if (!config || reading.coordinates.empty()) return;
  LegacyAxes axes{*config, {}, reading.encoders};
  const auto number = [&](const PlacedSample& placed, Coordinate coordinate) {
    const auto place = reading.place_of(coordinate);
    return place && *place < placed.numbers.size() ? placed.numbers[*place] : 0;
  };
  for (const PlacedSample& placed : reading.samples) {
    const std::int64_t tensor = number(placed, Coordinate::kTensor);
    axes.ranks.push_back({tensor, number(placed, Coordinate::kPipeline),
                          number(placed, Coordinate::kExpert), tensor % config->expert_tensor});
  }
  for (const MisplacedRank& rank : misplaced_ranks(axes, reading.naming, reading.samples)) {
    if (rank.is_of_another_save) continue;
    add_finding(diagnosis, "L40", {{"folder", rank.folder}, {"says", rank.says}});
  }
}

void add_unreadable(const LegacyEvidence& evidence, const LegacyReading& reading,
                    Diagnosis& diagnosis) {
  std::set<std::string> told;
  for (const UnreadableFile& file : evidence.unreadable) {
    add_finding(diagnosis, "L35", {{"file", file.path}, {"error", file.error}});
    told.insert(file.path);
    diagnosis.complete = false;
  }
  for (const NumberedFolder& folder : reading.groups.models) {
    const std::string path = folder.name + "/" + folder.file;
    if (folder.bytes > 0 || told.contains(path)) continue;
    add_finding(diagnosis, "L35", {{"file", path}, {"error", phrase("file.empty")}});
    diagnosis.complete = false;
  }
}

}  // namespace

void add_content_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                          Diagnosis& diagnosis) {
  add_data_coordinate(reading, diagnosis);
  add_file_names(reading, diagnosis);
  add_pipeline_split(reading, diagnosis);
  add_vocabulary(evidence, reading, diagnosis);
  add_experts(reading, diagnosis);
  add_components(reading, diagnosis);
  add_towers(evidence, reading, diagnosis);
  add_replicas(evidence, diagnosis);
  add_misplaced(reading, diagnosis);
  add_unreadable(evidence, reading, diagnosis);
}

}  // namespace shardwright
