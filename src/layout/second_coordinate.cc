// SPDX-License-Identifier: Apache-2.0
#include "layout/second_coordinate.h"

#include <algorithm>
#include <set>

#include "layout/encoder_stages.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

struct Opinion {
  SecondCoordinate meaning = SecondCoordinate::kUnknown;
  Confidence confidence = Confidence::kAmbiguous;
  Phrase why;
};

std::int64_t size_or_one(const std::optional<std::int64_t>& size) { return size.value_or(1); }

Opinion by_arguments(const CoordinateInput& input) {
  const RecordedRun& run = input.run;
  if (!run.is_present || (!run.sizes.pipeline && !run.sizes.expert)) return {};
  const EncoderStages encoders = encoder_stages(run, input.samples, 1);
  const std::int64_t decoder = size_or_one(run.sizes.pipeline);
  const std::int64_t pp = encoders.with_decoder(decoder).value_or(decoder);
  const std::int64_t ep = size_or_one(run.sizes.expert);
  const Phrase why = encoders.count == 0
                         ? phrase("args.pp_ep", {{"pp", pp}, {"ep", ep}})
                         : phrase("args.pp_ep_encoders",
                                  {{"pp", decoder}, {"ep", ep}, {"stages", encoders.count}});
  if (pp > 1 && ep == 1) return {SecondCoordinate::kPipeline, Confidence::kCertain, why};
  if (pp == 1 && ep > 1) return {SecondCoordinate::kExpert, Confidence::kCertain, why};
  return {SecondCoordinate::kUnknown, Confidence::kAmbiguous, why};
}

// The router counts all experts, a shard holds some: the quotient is EP, and if EP is not 1 there
// is no place for a pipeline rank among two numbers.
Opinion by_router(std::span<const PlacedSample> samples) {
  for (const PlacedSample& placed : samples) {
    const auto& rows = placed.contents.router_rows;
    const auto& local = placed.contents.local_experts;
    if (!rows || !local || *rows <= *local) continue;
    return {SecondCoordinate::kExpert, Confidence::kCertain,
            phrase("second.router", {{"rows", *rows}, {"local", *local}})};
  }
  return {};
}

std::int64_t distinct_seconds(std::span<const PlacedSample> samples) {
  std::vector<std::int64_t> seconds;
  for (const PlacedSample& placed : samples) seconds.push_back(placed.numbers[1]);
  std::ranges::sort(seconds);
  return static_cast<std::int64_t>(seconds.size() - std::ranges::unique(seconds).size());
}

// Ends of the model that only some second numbers hold are ends of a pipeline; where all hold both
// ends each shard is a whole model, cut by experts or copied.
Opinion by_ends(std::span<const PlacedSample> samples) {
  const auto count = [&](auto member) {
    return std::ranges::count_if(samples,
                                 [&](const PlacedSample& p) { return p.contents.*member; });
  };
  const auto all = static_cast<std::ptrdiff_t>(samples.size());
  const auto embeddings = count(&ShardContents::has_embedding);
  const auto norms = count(&ShardContents::has_final_norm);
  const bool has_experts = count(&ShardContents::has_experts) > 0;
  if (distinct_seconds(samples) < 2 || (embeddings == 0 && norms == 0)) return {};
  const Parameter shards{"all", all};
  // Stages with tied embeddings may each have a copy: one end that is not everywhere is enough.
  if (embeddings < all || norms < all) {
    const bool both = embeddings < all && norms < all;
    return {SecondCoordinate::kPipeline, both ? Confidence::kCertain : Confidence::kLikely,
            phrase("second.ends", {shards, {"a", embeddings}, {"b", norms}})};
  }
  if (has_experts) {
    return {SecondCoordinate::kExpert, Confidence::kLikely, phrase("second.all_experts", {shards})};
  }
  return {SecondCoordinate::kData, Confidence::kLikely, phrase("second.all_dense", {shards})};
}

Opinion by_bytes(const std::optional<ReplicaVerdict>& verdict, bool has_experts) {
  if (!verdict) return {};
  if (verdict->differing == 0) {
    return {has_experts ? SecondCoordinate::kExpert : SecondCoordinate::kData, Confidence::kLikely,
            phrase("second.same_bytes",
                   {{"name", verdict->tensor}, {"a", verdict->first}, {"b", verdict->second}})};
  }
  return {SecondCoordinate::kPipeline, Confidence::kLikely,
          phrase("second.other_bytes",
                 {{"name", verdict->tensor}, {"a", verdict->first}, {"b", verdict->second}})};
}

Opinion by_caller(const AxisSizes& believed) {
  const bool pp = size_or_one(believed.pipeline) > 1;
  const bool ep = size_or_one(believed.expert) > 1;
  if (pp == ep) return {};
  return {pp ? SecondCoordinate::kPipeline : SecondCoordinate::kExpert, Confidence::kLikely,
          phrase("second.caller", {{"flag", pp ? "--pp" : "--ep"}})};
}

// A tensor of both files whose bytes tell a replica from another layer: not a norm, which may still
// be all ones.
std::optional<ReplicaQuestion> question_about(std::span<const PlacedSample> samples) {
  for (const PlacedSample& a : samples) {
    for (const PlacedSample& b : samples) {
      if (a.numbers[0] != b.numbers[0] || a.numbers[1] >= b.numbers[1]) continue;
      if (a.sample->models.empty() || b.sample->models.empty()) continue;
      for (const SampledTensor& tensor : a.sample->models[0]) {
        if (tensor.shape.size() < 2 || is_expert_tensor(tensor.name)) continue;
        const auto& others = b.sample->models[0];
        const auto same = std::ranges::find(others, tensor.name, &SampledTensor::name);
        if (same == others.end() || same->shape != tensor.shape) continue;
        return ReplicaQuestion{a.sample->folder, b.sample->folder, tensor.name};
      }
    }
  }
  return std::nullopt;
}

// Not every first number goes with every second one.
bool is_sparse(std::span<const std::vector<std::int64_t>> names) {
  std::set<std::int64_t> firsts;
  std::set<std::int64_t> seconds;
  for (const auto& numbers : names) {
    firsts.insert(numbers[0]);
    seconds.insert(numbers[1]);
  }
  return names.size() < firsts.size() * seconds.size();
}

bool names_a_lone_pipeline_rank(const CoordinateInput& input) {
  return std::ranges::all_of(input.names, [](const auto& numbers) { return numbers[1] == 0; }) &&
         input.run.sizes.pipeline == 1 && size_or_one(input.run.sizes.expert) == 1;
}

Phrase reason_for(SecondCoordinate meaning) {
  switch (meaning) {
    case SecondCoordinate::kPipeline:
      return phrase("two.pipeline");
    case SecondCoordinate::kExpert:
      return phrase("two.expert");
    case SecondCoordinate::kData:
      return phrase("two.data");
    case SecondCoordinate::kUnknown:
      break;
  }
  return phrase("two.open");
}

}  // namespace

CoordinateDecision decide_second_coordinate(const CoordinateInput& input) {
  const bool has_experts = std::ranges::any_of(
      input.samples, [](const PlacedSample& placed) { return placed.contents.has_experts; });
  const Opinion recorded = by_arguments(input);
  Opinion shown = by_router(input.samples);
  // Stages that hold two copies of a model have both of its ends like whole models.
  const bool ends_tell = input.run.chunk_order != ChunkOrder::kTwoCopies;
  if (shown.meaning == SecondCoordinate::kUnknown && ends_tell) shown = by_ends(input.samples);

  CoordinateDecision decision;
  const auto settle = [&](const Opinion& opinion) {
    if (!opinion.why.english.empty()) decision.evidence.push_back(opinion.why);
    if (decision.meaning != SecondCoordinate::kUnknown) return;
    decision.meaning = opinion.meaning;
    decision.confidence = opinion.confidence;
  };
  const bool both =
      shown.meaning != SecondCoordinate::kUnknown && recorded.meaning != SecondCoordinate::kUnknown;
  // Expert ranks of a model without experts hold copies.
  const bool are_copies =
      shown.meaning == SecondCoordinate::kData && recorded.meaning == SecondCoordinate::kExpert;
  decision.contradicts_arguments = both && !are_copies && shown.meaning != recorded.meaning;
  // Arguments can be copied along or set by hand; tensors that are in a file are in the file.
  if (shown.confidence == Confidence::kCertain) settle(shown);
  settle(recorded);
  if (shown.confidence != Confidence::kCertain) settle(shown);
  settle(by_bytes(input.verdict, has_experts));
  if (decision.meaning == SecondCoordinate::kUnknown && is_sparse(input.names)) {
    settle({SecondCoordinate::kExpert, Confidence::kLikely, phrase("second.sparse")});
  }
  if (decision.meaning == SecondCoordinate::kUnknown) {
    if (!input.verdict) decision.question = question_about(input.samples);
    settle(by_caller(input.believed));
  }
  if (decision.meaning == SecondCoordinate::kUnknown && names_a_lone_pipeline_rank(input)) {
    settle({SecondCoordinate::kPipeline, Confidence::kLikely, phrase("second.lone_pipeline")});
    decision.question.reset();
  }
  if (decision.contradicts_arguments) decision.confidence = Confidence::kLikely;
  decision.reason = reason_for(decision.meaning);
  return decision;
}

}  // namespace shardwright
