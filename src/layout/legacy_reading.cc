// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_reading.h"

#include <algorithm>

#include "layout/legacy_coverage.h"
#include "layout/legacy_grid.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

std::optional<std::int64_t> believable(const std::optional<std::int64_t>& size) {
  return size && *size >= 1 && *size <= kMostRanksOfAnAxis ? size : std::nullopt;
}

std::int64_t count_at(const std::vector<NumberedFolder>& folders, std::size_t place) {
  std::int64_t most = 0;
  for (const NumberedFolder& folder : folders) {
    if (place < folder.numbers.size()) most = std::max(most, folder.numbers[place] + 1);
  }
  return most;
}

std::vector<PlacedSample> place_samples(const LegacyEvidence& evidence) {
  std::vector<PlacedSample> placed;
  for (const RankSample& sample : evidence.samples) {
    if (const auto numbers = parse_rank_folder(sample.folder)) {
      placed.push_back({&sample, *numbers, contents_of(sample)});
    }
  }
  return placed;
}

RecordedRun newest_run(const std::vector<PlacedSample>& samples) {
  const PlacedSample* newest = nullptr;
  for (const PlacedSample& placed : samples) {
    if (!placed.sample->run.is_present) continue;
    if (newest == nullptr || placed.sample->iteration > newest->sample->iteration) newest = &placed;
  }
  if (newest == nullptr) return {};
  RecordedRun run = newest->sample->run;
  AxisSizes& s = run.sizes;
  for (auto* size :
       {&s.tensor, &s.pipeline, &s.virtual_pipeline, &s.expert, &s.expert_tensor, &s.data}) {
    *size = believable(*size);
  }
  return run;
}

class Reader {
 public:
  Reader(const LegacyEvidence& evidence, FolderGroups groups) : evidence_(evidence) {
    reading_.groups = std::move(groups);
    reading_.samples = place_samples(evidence);
    reading_.run = newest_run(reading_.samples);
    for (const PlacedSample& placed : reading_.samples) add_contents(placed.contents);
    if (!reading_.experts) reading_.experts = reading_.run.experts;
  }

  LegacyReading read() {
    read_coordinates();
    read_sizes();
    tell_samples();
    return std::move(reading_);
  }

 private:
  [[nodiscard]] const std::vector<NumberedFolder>& models() const { return reading_.groups.models; }

  void add_contents(const ShardContents& contents) {
    reading_.has_experts |= contents.has_experts;
    if (contents.router_rows) reading_.experts = contents.router_rows;
    if (contents.local_experts) reading_.local_experts = contents.local_experts;
  }

  void set(std::vector<Coordinate> coordinates, Confidence confidence, Phrase reason) {
    reading_.coordinates = std::move(coordinates);
    reading_.confidence = confidence;
    reading_.reason = std::move(reason);
  }

  void read_coordinates() {
    switch (models().front().numbers.size()) {
      case 1:
        return set({Coordinate::kTensor}, Confidence::kCertain, phrase("numbers.one"));
      case 2:
        return read_two();
      case 3:
        return read_three();
      default:
        return set(
            {Coordinate::kTensor, Coordinate::kPipeline, Coordinate::kData, Coordinate::kExpert},
            Confidence::kLikely, phrase("numbers.four"));
    }
  }

  void read_two() {
    std::vector<std::vector<std::int64_t>> names;
    for (const NumberedFolder& folder : models()) names.push_back(folder.numbers);
    CoordinateDecision decision = decide_second_coordinate(
        {reading_.run, reading_.samples, names, evidence_.believed, evidence_.verdict});
    std::vector<Coordinate> coordinates = {Coordinate::kTensor};
    if (decision.meaning == SecondCoordinate::kPipeline) {
      coordinates.push_back(Coordinate::kPipeline);
    } else if (decision.meaning == SecondCoordinate::kExpert) {
      coordinates.push_back(Coordinate::kExpert);
    } else if (decision.meaning == SecondCoordinate::kData) {
      coordinates.push_back(Coordinate::kData);
    }
    set(std::move(coordinates), decision.confidence, std::move(decision.reason));
    reading_.evidence = std::move(decision.evidence);
    reading_.question = std::move(decision.question);
    reading_.contradicts_arguments = decision.contradicts_arguments;
  }

  // Expert parallelism needs experts: a third number without any is a data-parallel rank.
  void read_three() {
    const bool knows = !reading_.samples.empty();
    const bool records_experts = reading_.run.sizes.expert.value_or(1) > 1;
    if (knows && !reading_.has_experts && !records_experts) {
      return set({Coordinate::kTensor, Coordinate::kPipeline, Coordinate::kData},
                 Confidence::kLikely, phrase("numbers.three_dense"));
    }
    set({Coordinate::kTensor, Coordinate::kPipeline, Coordinate::kExpert},
        knows ? Confidence::kCertain : Confidence::kLikely, phrase("numbers.three"));
  }

  // As recorded, so that shards missing at the end are missed and those of another save stand out;
  // unless the tensors show that what was recorded is of another run.
  std::optional<std::int64_t> size_of(Coordinate coordinate,
                                      const std::optional<std::int64_t>& recorded) {
    const auto place = reading_.place_of(coordinate);
    if (!place) return 1;
    const std::int64_t shown = count_at(models(), *place);
    if (!recorded || *recorded < 1) return shown;
    return reading_.contradicts_arguments ? std::max(*recorded, shown) : *recorded;
  }

  void read_sizes() {
    AxisSizes& sizes = reading_.sizes;
    const AxisSizes& recorded = reading_.run.sizes;
    sizes.tensor = size_of(Coordinate::kTensor, recorded.tensor);
    sizes.data = recorded.data;
    for (const PlacedSample& placed : reading_.samples) {
      const auto stages = static_cast<std::int64_t>(placed.sample->models.size());
      sizes.virtual_pipeline = std::max(sizes.virtual_pipeline.value_or(1), stages);
    }
    if (reading_.place_of(Coordinate::kData)) {
      sizes.data = count_at(models(), *reading_.place_of(Coordinate::kData));
    }
    read_optimizer_ranks();
    const bool is_open = reading_.coordinates.size() < models().front().numbers.size();
    if (is_open) return;
    reading_.encoders =
        encoder_stages(reading_.run, reading_.samples, reading_.place_of(Coordinate::kPipeline));
    sizes.pipeline =
        size_of(Coordinate::kPipeline, reading_.encoders.with_decoder(recorded.pipeline));
    sizes.expert = expert_size();
    if (reading_.coordinates.size() == 3 && sizes.pipeline == 1) {
      reading_.naming = RankNaming::kTpPpEp;
    }
    sizes.expert_tensor = expert_tensor_size();
  }

  // Old distributed optimizers have folders of their own, with a data-parallel number more.
  void read_optimizer_ranks() {
    const auto& optimizers = reading_.groups.optimizers;
    if (optimizers.empty()) return;
    const std::size_t numbers = optimizers.front().numbers.size();
    // AIAK's have the expert rank behind it.
    const std::size_t place = numbers == 4 ? 2 : numbers - 1;
    if (place == 0 || numbers <= models().front().numbers.size()) return;
    reading_.sizes.data = count_at(optimizers, place);
    reading_.has_optimizer_ranks = true;
  }

  std::optional<std::int64_t> expert_size() {
    const auto shown = size_of(Coordinate::kExpert, reading_.run.sizes.expert);
    if (!reading_.place_of(Coordinate::kExpert) || !reading_.experts || !reading_.local_experts) {
      return shown;
    }
    const std::int64_t by_router =
        *reading_.experts / std::max<std::int64_t>(*reading_.local_experts, 1);
    const bool fits = by_router >= *shown && by_router <= kMostRanksOfAnAxis;
    return fits && !reading_.run.sizes.expert ? by_router : shown;
  }

  std::optional<std::int64_t> expert_tensor_size() {
    const bool may_have_experts = reading_.has_experts || reading_.place_of(Coordinate::kExpert);
    if (!may_have_experts) return 1;
    const std::int64_t tp = *reading_.sizes.tensor;
    const auto& recorded = reading_.run.sizes.expert_tensor;
    if (reading_.run.has_own_expert_order) return tp;  // all pairs of ranks have folders
    if (recorded) return recorded;
    reading_.assumed_expert_tensor = 1;
    const auto config = reading_.config();
    const ExpertTensorFit fit = config ? fit_expert_tensor(reading_.model_names(), *config,
                                                           reading_.naming, reading_.encoders)
                                       : ExpertTensorFit{{}, tp};
    const std::vector<std::int64_t>& fitting = fit.fitting;
    reading_.assumed_expert_tensor = fit.nearest;
    // Megatron takes TP where no other size is given.
    const bool fits_default = std::ranges::find(fitting, tp) != fitting.end();
    if (reading_.run.is_present && (fits_default || fitting.empty())) return tp;
    if (fitting.size() == 1) return fitting.front();
    return std::nullopt;
  }

  void tell_samples() {
    std::string names;
    for (const PlacedSample& placed : reading_.samples) {
      names += (names.empty() ? "" : ", ") + placed.sample->folder;
    }
    if (!names.empty()) {
      reading_.evidence.push_back(phrase("pickles_read", {{"names", names}}));
    }
  }

  const LegacyEvidence& evidence_;
  LegacyReading reading_;
};

}  // namespace

std::set<std::string> LegacyReading::model_names() const {
  std::set<std::string> names;
  for (const NumberedFolder& folder : groups.models) names.insert(folder.name);
  return names;
}

std::optional<std::size_t> LegacyReading::place_of(Coordinate coordinate) const {
  const auto found = std::ranges::find(coordinates, coordinate);
  if (found == coordinates.end()) return std::nullopt;
  return static_cast<std::size_t>(found - coordinates.begin());
}

std::optional<ParallelConfig> LegacyReading::config() const {
  if (!sizes.tensor || !sizes.pipeline || !sizes.expert) return std::nullopt;
  const ParallelConfig config{*sizes.tensor, *sizes.pipeline, sizes.virtual_pipeline.value_or(1),
                              *sizes.expert, sizes.expert_tensor.value_or(assumed_expert_tensor)};
  return is_believable_grid(config) ? std::optional(config) : std::nullopt;
}

std::string_view short_name(Coordinate coordinate) {
  switch (coordinate) {
    case Coordinate::kTensor:
      return "tp";
    case Coordinate::kPipeline:
      return "pp";
    case Coordinate::kExpert:
      return "ep";
    case Coordinate::kData:
      return "dp";
  }
  return "";
}

std::string pattern_of(const std::vector<Coordinate>& coordinates) {
  std::string pattern = "mp_rank";
  for (const Coordinate coordinate : coordinates) {
    pattern += "_{" + std::string(short_name(coordinate)) +
               (coordinate == Coordinate::kTensor ? ":02d}" : ":03d}");
  }
  return pattern;
}

LegacyReading read_legacy_layout(const LegacyEvidence& evidence, FolderGroups groups) {
  return Reader(evidence, std::move(groups)).read();
}

}  // namespace shardwright
