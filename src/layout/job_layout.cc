// SPDX-License-Identifier: Apache-2.0
#include "layout/job_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "layout/expert_names.h"
#include "layout/layer_name.h"
#include "layout/object_set.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
constexpr std::string_view kEmbedding = "embedding.word_embeddings.weight";

// `decoder.layers.0.mlp.experts.experts.` and 3, of a tensor of the fourth expert alone.
struct ExpertName {
  std::string_view module;
  std::int64_t expert = 0;
};

std::optional<ExpertName> numbered_expert(std::string_view name) {
  const std::string_view rest = name_in_experts(name);
  if (rest.empty()) return std::nullopt;
  ExpertName result{name.substr(0, name.size() - rest.size()), 0};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), result.expert);
  // One more is a count of experts.
  constexpr std::int64_t kMostExperts = std::int64_t{1} << 32;
  const bool is_number = error == std::errc() && end != rest.data() + rest.size() && *end == '.';
  if (!is_number || result.expert < 0 || result.expert > kMostExperts) return std::nullopt;
  return result;
}

// Names of embeddings that the last stage has as well: of a model without an output layer of its
// own, which multiplies with the embedding, and of one whose prediction layers embed tokens.
std::unordered_set<std::string> tied_embeddings(std::span<const TensorDesc> tensors) {
  std::unordered_set<std::string> embeddings;
  std::unordered_set<std::string> untied;
  bool predicts = false;
  for (const TensorDesc& tensor : tensors) {
    constexpr std::string_view kOutput = "output_layer.weight";
    std::string_view name = tensor.name;
    predicts = predicts || is_prediction_layer(name);
    if (name.ends_with(kEmbedding)) embeddings.emplace(name);
    if (!name.ends_with(kOutput)) continue;
    name.remove_suffix(kOutput.size());
    untied.insert(std::string(name) + std::string(kEmbedding));
  }
  if (!predicts) {
    std::erase_if(embeddings, [&](const std::string& name) { return untied.contains(name); });
  }
  return embeddings;
}

Status check_sizes(const ParallelConfig& config, std::int64_t data) {
  for (const std::int64_t size :
       {config.tensor, config.pipeline, config.expert, config.expert_tensor, data}) {
    if (size > kMostRanks) {
      return fail(Code::kLimit, "a parallel size of {}, expected at most {}", size, kMostRanks);
    }
  }
  const std::int64_t stage = config.tensor * data;
  if (stage > kMostRanks || stage * config.pipeline > kMostRanks) {
    return fail(Code::kLimit, "--tp {} with --pp {} and --dp {}, expected at most {} ranks",
                config.tensor, config.pipeline, data, kMostRanks);
  }
  const std::int64_t experts = config.expert * config.expert_tensor;
  if (stage % experts != 0) {
    return fail(Code::kNotDivisible,
                "--tp {} with --dp {} makes {} ranks in a stage, expected a multiple of --ep {} "
                "with --etp {}; choose others",
                config.tensor, data, stage, config.expert, config.expert_tensor);
  }
  return {};
}

}  // namespace

bool RankRuns::contains(std::int64_t rank) const {
  const std::int64_t behind = rank - first;
  if (behind < 0) return false;
  const std::int64_t run = runs == 1 ? 0 : behind / stride;
  return run < runs && behind - run * stride < length;
}

JobLayout::JobLayout(Placement placement, const ParallelConfig& config, std::int64_t data)
    : placement_(std::move(placement)),
      config_(config),
      data_(data),
      placement_width_(std::lcm(config.tensor, config.expert * config.expert_tensor)) {}

Result<JobLayout> JobLayout::make(std::span<const TensorDesc> tensors, const ParallelConfig& config,
                                  std::int64_t data, const std::optional<StackSplits>& splits) {
  SW_TRY(check_sizes(config, data));
  JobLayout layout(SW_TRY(Placement::make(tensors, config, splits)), config, data);
  if (config.pipeline > 1) layout.tied_ = tied_embeddings(tensors);
  for (const TensorDesc& tensor : tensors) {
    const auto expert = numbered_expert(tensor.name);
    if (!expert) continue;
    std::int64_t& count = layout.experts_[std::string(expert->module)];
    count = std::max(count, expert->expert + 1);
  }
  return layout;
}

Result<std::int64_t> JobLayout::expert_rank_of(std::string_view name) const {
  const auto expert = numbered_expert(name);
  if (!expert) return 0;
  const auto found = experts_.find(std::string(expert->module));
  const std::int64_t count = found == experts_.end() ? expert->expert + 1 : found->second;
  if (count % config_.expert != 0) {
    return fail(Code::kNotDivisible, "tensor {}: one of {} experts, expected a multiple of --ep {}",
                name, count, config_.expert);
  }
  return expert->expert / (count / config_.expert);
}

Result<JobShards> JobLayout::place(const TensorDesc& tensor) const {
  const auto layer = split_layer_name(tensor.name);
  const bool stacked = layer && !layer->index && !tensor.shape.empty();
  const ShardRule rule = placement_.rule_of(tensor, stacked);
  JobShards shards;
  shards.is_expert = rule.is_expert;
  shards.is_replicated = rule.axis < 0;
  shards.is_tied = tied_.contains(tensor.name);
  if (rule.is_expert && rule.expert_axis < 0) {
    shards.expert_rank = SW_TRY(expert_rank_of(tensor.name));
  }
  shards.pieces = SW_TRY(placement_.place(tensor));
  return shards;
}

RankRuns JobLayout::holders(const JobShards& shards, std::size_t piece) const {
  const std::int64_t owner = shards.pieces.owner(piece);
  const std::int64_t first = owner / placement_width_ * stage_ranks();
  const std::int64_t tensor = shards.is_expert ? config_.expert_tensor : config_.tensor;
  const std::int64_t stride = shards.is_expert ? tensor * config_.expert : tensor;
  const std::int64_t part = owner % placement_width_ + shards.expert_rank * tensor;
  return {first + part, shards.is_replicated ? tensor : 1, stride, stage_ranks() / stride};
}

RankRuns JobLayout::tied_holders(const JobShards& shards, std::size_t piece) const {
  RankRuns ranks = holders(shards, piece);
  ranks.first += (config_.pipeline - 1) * stage_ranks();
  return ranks;
}

std::int64_t JobLayout::group_of(std::int64_t rank) const {
  return rank / stage_ranks() * config_.tensor + rank % config_.tensor;
}

std::int64_t JobLayout::member_of(std::int64_t rank) const {
  return rank % stage_ranks() / config_.tensor;
}

std::int64_t JobLayout::rank_of(std::int64_t group, std::int64_t member) const {
  return group / config_.tensor * stage_ranks() + member * config_.tensor + tensor_rank_of(group);
}

std::optional<std::int64_t> JobLayout::rank_of_object(std::string_view name) const {
  const std::optional<ObjectPart> part = object_part_of(name);
  if (name.starts_with("rng_state/") || name.starts_with("rerun_state_machine_state/")) {
    return part ? rank_of_state(part->place, part->sizes) : std::nullopt;
  }
  const std::int64_t first = placement_.rank_of_object(name) / placement_width_ * stage_ranks();
  if (!is_of_routed_experts(name)) return first;
  std::int64_t expert_rank = 0;
  if (numbered_expert(name)) {
    expert_rank = expert_rank_of(name).value_or(0);
  } else if (part && part->sizes.back() % config_.expert == 0) {
    expert_rank = part->place.back() / (part->sizes.back() / config_.expert);
  }
  return first + expert_rank * config_.expert_tensor;
}

std::optional<std::int64_t> JobLayout::rank_of_state(std::span<const std::int64_t> place,
                                                     std::span<const std::int64_t> sizes) const {
  // By rank, or by pipeline, tensor and, in some versions, data-parallel rank.
  const std::array ranks = {config_.pipeline, config_.tensor, data_};
  if (sizes.size() == 1) return sizes[0] == world_size() ? std::optional(place[0]) : std::nullopt;
  const bool fits = sizes.size() <= ranks.size() &&
                    std::ranges::equal(sizes, std::span(ranks).first(sizes.size()));
  if (!fits) return std::nullopt;
  const std::int64_t data = sizes.size() == 3 ? place[2] : 0;
  return place[0] * stage_ranks() + data * config_.tensor + place[1];
}

}  // namespace shardwright
