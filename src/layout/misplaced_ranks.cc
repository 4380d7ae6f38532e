// SPDX-License-Identifier: Apache-2.0
#include "layout/misplaced_ranks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "layout/layer_name.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// Beyond any run that there was; products of three stay within 64 bits.
constexpr std::int64_t kMostRunRanks = std::int64_t{1} << 20;

// How the ranks of a run are numbered: tensor ranks first, always.
struct RankOrder {
  bool pipeline_before_data = false;
  bool context_before_expert = false;  // as before experts had a grid of their own
};

LegacyRank rank_of(const RecordedRun& run, const ParallelConfig& config, RankOrder order) {
  const std::int64_t rank = *run.rank;
  const std::int64_t context = run.context.value_or(1);
  LegacyRank decoded;
  decoded.tensor = rank % config.tensor;
  decoded.pipeline = order.pipeline_before_data ? rank / (config.tensor * context) % config.pipeline
                                                : rank / (*run.world / config.pipeline);
  const std::int64_t step =
      order.context_before_expert ? config.tensor * context : config.expert_tensor;
  decoded.expert = rank / step % config.expert;
  decoded.expert_tensor = decoded.tensor % config.expert_tensor;
  return decoded;
}

// What the first and the last stage have, and the others lack.
class Stages {
 public:
  Stages(const LegacyAxes& axes, std::span<const PlacedSample> samples)
      : last_(axes.config.pipeline - 1) {
    if (last_ == 0) return;
    first_ = last_;
    bool is_folded = true;  // the last layers lie with the first ones, as DualPipe has it
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const ShardContents& contents = samples[i].contents;
      const bool has_prediction = has_prediction_layers(*samples[i].sample);
      any_prediction_ |= has_prediction;
      is_seq_to_seq_ |= has_encoder(*samples[i].sample);
      any_embedding_ |= contents.has_embedding && !has_prediction;
      any_norm_ |= contents.has_final_norm;
      is_folded &= !contents.has_embedding || contents.has_final_norm;
      const bool is_language =
          contents.layers > 0 || contents.has_embedding || contents.has_final_norm;
      if (is_language) first_ = std::min(first_, axes.ranks[i].pipeline);
    }
    norm_counts_ = any_norm_ && !any_prediction_ && !is_folded;
  }

  // Why a file is not of that stage; nothing where it may be.
  [[nodiscard]] std::optional<Phrase> contradiction(const PlacedSample& placed,
                                                    std::int64_t stage) const {
    if (last_ == 0 || is_seq_to_seq_) return std::nullopt;
    const ShardContents& contents = placed.contents;
    const bool is_copy = has_prediction_layers(*placed.sample) || contents.has_final_norm;
    if (stage == first_ && !contents.has_embedding && any_embedding_) {
      return phrase("rank.lacks_embedding");
    }
    if (stage != first_ && contents.has_embedding && !is_copy) {
      return phrase("rank.holds_embedding");
    }
    if (!norm_counts_) return std::nullopt;
    if (stage == last_ && !contents.has_final_norm) {
      return phrase("rank.lacks_norm");
    }
    if (stage != last_ && contents.has_final_norm) {
      return phrase("rank.holds_norm");
    }
    return std::nullopt;
  }

 private:
  template <class Matches>
  static bool any_tensor(const RankSample& sample, Matches matches) {
    return std::ranges::any_of(sample.models, [&](const auto& model) {
      return std::ranges::any_of(model,
                                 [&](const SampledTensor& tensor) { return matches(tensor.name); });
    });
  }
  static bool has_prediction_layers(const RankSample& sample) {
    return any_tensor(sample, [](std::string_view name) { return is_prediction_layer(name); });
  }
  // T5's decoder begins with an embedding, on whatever stage that is.
  static bool has_encoder(const RankSample& sample) {
    return any_tensor(sample,
                      [](std::string_view name) { return name.starts_with("encoder.layers."); });
  }

  std::int64_t first_ = 0;
  std::int64_t last_ = 0;
  bool any_embedding_ = false;
  bool any_norm_ = false;
  bool any_prediction_ = false;
  bool is_seq_to_seq_ = false;
  bool norm_counts_ = false;
};

bool has_experts(std::span<const PlacedSample> samples) {
  return std::ranges::any_of(samples, [](const PlacedSample& placed) {
    return placed.contents.has_experts && !placed.sample->run.has_own_expert_order;
  });
}

bool is_one_rank(const LegacyRank& a, const LegacyRank& b, bool with_experts) {
  return a.tensor == b.tensor && a.pipeline == b.pipeline &&
         (!with_experts || a.expert == b.expert);
}

// The numbering by which the recorded ranks are to be read, where there is one.
class Claims {
 public:
  Claims(const LegacyAxes& axes, std::span<const PlacedSample> samples, const Stages& stages)
      : axes_(axes), samples_(samples), with_experts_(has_experts(samples)) {
    if (!record_ranks(axes, samples)) return;
    const std::optional<bool> told = samples.front().sample->run.pipeline_before_data;
    std::size_t most = 0;
    for (const bool pipeline_first : {false, true}) {
      if (told && *told != pipeline_first) continue;
      for (const bool context_first : {false, true}) {
        const RankOrder order{pipeline_first, context_first};
        if (contradicts_contents(order, stages)) continue;
        const std::size_t fitting = count_fitting(order);
        if (order_ && fitting <= most) continue;
        order_ = order;
        most = fitting;
      }
    }
  }

  // The rank that a file claims and that is not its folder's.
  [[nodiscard]] std::optional<LegacyRank> other_rank(std::size_t i) const {
    if (!order_) return std::nullopt;
    const LegacyRank claimed = rank_of(samples_[i].sample->run, axes_.config, *order_);
    if (is_one_rank(claimed, axes_.ranks[i], with_experts_)) return std::nullopt;
    return claimed;
  }

 private:
  [[nodiscard]] bool contradicts_contents(RankOrder order, const Stages& stages) const {
    return std::ranges::any_of(samples_, [&](const PlacedSample& placed) {
      const LegacyRank claimed = rank_of(placed.sample->run, axes_.config, order);
      return stages.contradiction(placed, claimed.pipeline).has_value();
    });
  }
  [[nodiscard]] std::size_t count_fitting(RankOrder order) const {
    std::size_t fitting = 0;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const LegacyRank claimed = rank_of(samples_[i].sample->run, axes_.config, order);
      if (is_one_rank(claimed, axes_.ranks[i], with_experts_)) ++fitting;
    }
    return fitting;
  }

  const LegacyAxes& axes_;
  std::span<const PlacedSample> samples_;
  bool with_experts_;
  std::optional<RankOrder> order_;
};

// What is not of one save with the others, by the first file.
std::optional<Phrase> other_save(const RankSample& first, const RankSample& sample) {
  if (first.iteration && sample.iteration && *first.iteration != *sample.iteration) {
    return phrase(
        "rank.other_iteration",
        {{"iteration", *sample.iteration}, {"first", first.folder}, {"other", *first.iteration}});
  }
  const AxisSizes& a = first.run.sizes;
  const AxisSizes& b = sample.run.sizes;
  const auto differ = [](const auto& left, const auto& right) {
    return left && right && *left != *right;
  };
  if (differ(a.tensor, b.tensor) || differ(a.pipeline, b.pipeline) || differ(a.expert, b.expert)) {
    return phrase("rank.other_sizes", {{"first", first.folder}});
  }
  return std::nullopt;
}

// Of folders that lost or gained an axis since: their ranks are numbered by other sizes.
bool has_other_sizes(const RecordedRun& run, const ParallelConfig& config, bool with_experts) {
  const auto differs = [](const std::optional<std::int64_t>& recorded, std::int64_t size) {
    return recorded && *recorded != size;
  };
  const AxisSizes& sizes = run.sizes;
  return differs(sizes.tensor, config.tensor) || differs(sizes.pipeline, config.pipeline) ||
         (with_experts && (differs(sizes.expert, config.expert) ||
                           differs(sizes.expert_tensor, config.expert_tensor)));
}

}  // namespace

bool record_ranks(const LegacyAxes& axes, std::span<const PlacedSample> samples) {
  if (samples.size() < 2) return false;
  const ParallelConfig& config = axes.config;
  for (const std::int64_t size :
       {config.tensor, config.pipeline, config.expert, config.expert_tensor}) {
    if (size < 1 || size > kMostRunRanks) return false;
  }
  const RecordedRun& first = samples.front().sample->run;
  std::set<std::int64_t> ranks;
  const bool with_experts = has_experts(samples);
  for (const PlacedSample& placed : samples) {
    if (has_other_sizes(placed.sample->run, config, with_experts)) return false;
    const RecordedRun& run = placed.sample->run;
    if (!run.rank || !run.world || run.encoder_stages > 0 || run.world != first.world) return false;
    if (*run.rank < 0 || *run.rank >= *run.world || *run.world > kMostRunRanks) return false;
    if (run.context.value_or(1) < 1 || run.context.value_or(1) > *run.world) return false;
    ranks.insert(*run.rank);
  }
  // The ranks of a run of these sizes; a converter's own processes may be any number.
  const std::int64_t stage = config.tensor * config.pipeline;
  const std::int64_t expert_stage = config.expert_tensor * config.expert * config.pipeline;
  const bool is_run =
      *first.world % stage == 0 && (!with_experts || *first.world % expert_stage == 0);
  return ranks.size() > 1 && is_run;
}

std::vector<MisplacedRank> misplaced_ranks(const LegacyAxes& axes, RankNaming naming,
                                           std::span<const PlacedSample> samples) {
  std::vector<MisplacedRank> misplaced;
  if (samples.empty()) return misplaced;
  const Stages stages(axes, samples);
  const Claims claims(axes, samples, stages);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const RankSample& sample = *samples[i].sample;
    if (auto says = other_save(*samples.front().sample, sample)) {
      misplaced.push_back({sample.folder, *std::move(says), true});
    } else if (const auto rank = claims.other_rank(i)) {
      const std::string folder = rank_folder_name(*rank, axes.config, naming);
      const std::int64_t number = *sample.run.rank;
      const std::int64_t world = *sample.run.world;
      misplaced.push_back(
          {sample.folder,
           phrase("rank.claimed", {{"rank", number}, {"world", world}, {"folder", folder}})});
    } else if (auto contradiction = stages.contradiction(samples[i], axes.ranks[i].pipeline)) {
      misplaced.push_back({sample.folder, *std::move(contradiction)});
    }
  }
  return misplaced;
}

}  // namespace shardwright
