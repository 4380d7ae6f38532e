// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_axes.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/fail.h"
#include "layout/legacy_coverage.h"
#include "layout/rank_folder.h"
#include "layout/second_coordinate.h"
#include "layout/shard_contents.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// The meaning of the numbers behind the tensor rank.
struct Meaning {
  int pipeline = -1;  // position, or -1
  int expert = -1;
};

std::vector<PlacedSample> placed_samples(const LegacyAxesEvidence& evidence) {
  std::vector<PlacedSample> placed;
  for (std::size_t i = 0; i < evidence.samples.size(); ++i) {
    const RankSample& sample = evidence.samples[i];
    placed.push_back({&sample, evidence.folders[i], contents_of(sample)});
  }
  return placed;
}

Result<Meaning> meaning_of_two(const LegacyAxesEvidence& evidence) {
  const std::vector<PlacedSample> placed = placed_samples(evidence);
  const CoordinateDecision decision =
      decide_second_coordinate({evidence.run, placed, evidence.folders, {}, std::nullopt});
  // Copies may be told apart by an expert rank too.
  const bool is_copy =
      decision.meaning == SecondCoordinate::kData || decision.meaning == SecondCoordinate::kExpert;
  const bool agrees = is_copy && evidence.run.sizes.expert.value_or(1) > 1;
  if (decision.contradicts_arguments && !agrees) {
    std::string reasons;
    for (const Phrase& reason : decision.evidence) {
      reasons += (reasons.empty() ? "" : translated(", but ")) + said(reason);
    }
    return fail(Code::kLegacyLayout,
                "the second number of mp_rank folders: found that {}; is this a mix of two "
                "checkpoints?",
                reasons);
  }
  switch (decision.meaning) {
    case SecondCoordinate::kPipeline:
      return Meaning{1, -1};
    case SecondCoordinate::kExpert:
    case SecondCoordinate::kData:
      return Meaning{-1, 1};
    case SecondCoordinate::kUnknown:
      break;
  }
  return fail(Code::kLegacyLayout,
              "the second number of mp_rank folders: nothing tells whether it is a pipeline rank "
              "or an expert rank; shardwright diagnose says what would");
}

Result<Meaning> meaning_of(const LegacyAxesEvidence& evidence, std::size_t numbers) {
  if (numbers == 1) return Meaning{};
  if (numbers == 2) return meaning_of_two(evidence);
  if (numbers == 3) return Meaning{1, 2};
  return fail(Code::kLegacyLayout,
              "found {} numbers in the names of mp_rank folders, expected at most three: tensor, "
              "pipeline and expert rank",
              numbers);
}

std::int64_t number_at(const std::vector<std::int64_t>& numbers, int position) {
  return position < 0 ? 0 : numbers[static_cast<std::size_t>(position)];
}

Result<std::int64_t> size_of(const LegacyAxesEvidence& evidence, int position,
                             std::optional<std::int64_t> told, std::string_view axis) {
  std::int64_t shown = 1;
  for (const auto& folder : evidence.folders) {
    shown = std::max(shown, number_at(folder, position) + 1);
  }
  if (!told) return shown;
  if (shown > *told) {
    return fail(Code::kLegacyLayout,
                "found folders of {} {} ranks, expected {} as the saved arguments say; is this a "
                "mix of two checkpoints?",
                shown, axis, *told);
  }
  return *told;
}

EncoderStages encoders_of(const LegacyAxesEvidence& evidence, Meaning meaning) {
  std::optional<std::size_t> place;
  if (meaning.pipeline >= 0) place = static_cast<std::size_t>(meaning.pipeline);
  return encoder_stages(evidence.run, placed_samples(evidence), place);
}

Status check_encoders(const LegacyAxes& axes) {
  const auto extra = std::ranges::find_if(
      axes.ranks, [&](const LegacyRank& rank) { return axes.encoders.lack(rank); });
  if (extra == axes.ranks.end()) return {};
  return fail(Code::kLegacyLayout,
              "found a folder of tensor rank {} and pipeline rank {}, expected {} tensor ranks in "
              "that stage of an encoder as the saved arguments say; is this a mix of two "
              "checkpoints?",
              extra->tensor, extra->pipeline, axes.encoders.tensor);
}

bool has_experts(const LegacyAxesEvidence& evidence) {
  return std::ranges::any_of(
      evidence.samples, [](const RankSample& sample) { return contents_of(sample).has_experts; });
}

// Megatron takes TP where its arguments name no other size. Files without arguments may be of any.
void settle_expert_tensor(const LegacyAxesEvidence& evidence, LegacyAxes& axes) {
  std::optional<std::int64_t> told = evidence.run.sizes.expert_tensor;
  if (evidence.run.has_own_expert_order) told = axes.config.tensor;  // all pairs have folders
  axes.set_expert_tensor(told.value_or(axes.config.tensor));
  if (told || evidence.run.is_present || !has_experts(evidence)) return;
  const bool has_three = evidence.folders.front().size() == 3;
  const RankNaming naming =
      has_three && axes.config.pipeline == 1 ? RankNaming::kTpPpEp : RankNaming::kMegatron;
  std::set<std::string> names;
  for (const LegacyRank& rank : axes.ranks) {
    names.insert(rank_folder_name(rank, axes.config, naming));
  }
  const ExpertTensorFit fit = fit_expert_tensor(names, axes.config, naming, axes.encoders);
  axes.set_expert_tensor(fit.nearest);
  axes.is_expert_tensor_open = fit.fitting.size() > 1;
}

}  // namespace

void LegacyAxes::set_expert_tensor(std::int64_t size) {
  config.expert_tensor = size;
  if (size < 1) return;
  for (LegacyRank& rank : ranks) rank.expert_tensor = rank.tensor % size;
}

Result<LegacyAxes> settle_legacy_axes(const LegacyAxesEvidence& evidence) {
  if (evidence.folders.empty()) {
    return fail(Code::kLegacyLayout, "no mp_rank folder holds a model");
  }
  const std::size_t numbers = evidence.folders.front().size();
  for (const auto& folder : evidence.folders) {
    if (folder.size() != numbers) {
      return fail(Code::kLegacyLayout,
                  "found mp_rank folders of {} and of {} numbers, expected one kind; are there "
                  "leftovers of another run?",
                  numbers, folder.size());
    }
  }
  const Meaning meaning = SW_TRY(meaning_of(evidence, numbers));
  LegacyAxes axes;
  ParallelConfig& config = axes.config;
  config.tensor = SW_TRY(size_of(evidence, 0, evidence.run.sizes.tensor, "tensor"));
  axes.encoders = encoders_of(evidence, meaning);
  config.pipeline =
      SW_TRY(size_of(evidence, meaning.pipeline,
                     axes.encoders.with_decoder(evidence.run.sizes.pipeline), "pipeline"));
  config.expert = SW_TRY(size_of(evidence, meaning.expert, evidence.run.sizes.expert, "expert"));
  config.virtual_pipeline = evidence.virtual_stages;
  for (const auto& folder : evidence.folders) {
    axes.ranks.push_back({number_at(folder, 0), number_at(folder, meaning.pipeline),
                          number_at(folder, meaning.expert), 0});
  }
  SW_TRY(check_encoders(axes));
  settle_expert_tensor(evidence, axes);
  if (config.expert_tensor < 1 || config.tensor % config.expert_tensor != 0) {
    return fail(Code::kNotDivisible,
                "found expert tensor size {} with tensor size {}, expected a divisor of it: such "
                "ranks overwrote each other's files when they were saved",
                config.expert_tensor, config.tensor);
  }
  return axes;
}

}  // namespace shardwright
