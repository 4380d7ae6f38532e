// SPDX-License-Identifier: Apache-2.0
#include "layout/placement.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "layout/layer_name.h"
#include "layout/piece_limit.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

struct Interval {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t part = 0;  // the tensor-parallel rank
};

// Cuts an axis into `parts` equal intervals; a gated axis is cut in its two halves, so that part p
// holds the p-th piece of each.
std::vector<Interval> cut_axis(std::int64_t extent, std::int64_t parts, bool in_two) {
  const std::int64_t halves = in_two ? 2 : 1;
  const std::int64_t length = extent / (parts * halves);
  std::vector<Interval> intervals;
  for (std::int64_t i = 0; i < parts * halves; ++i) {
    intervals.push_back({i * length, length, i % parts});
  }
  return intervals;
}

// What chose the number of parts.
std::string_view flag_of(std::string_view name, const ShardRule& rule,
                         const ParallelConfig& config) {
  if (rule.is_expert) return "--etp";
  return config.encoder_tensor > 0 && !tower_of(name).empty() ? "--encoder-tp" : "--tp";
}

// Its first axis counts the layers.
bool is_stacked(const std::optional<LayerName>& layer, const TensorDesc& tensor) {
  return layer && !layer->index && !tensor.shape.empty();
}

}  // namespace

Result<Placement> Placement::make(std::span<const TensorDesc> tensors, const ParallelConfig& config,
                                  const std::optional<StackSplits>& splits) {
  SW_TRY(check_piece_count(tensors));
  Placement placement;
  placement.config_ = config;
  placement.heads_ = OutputHeads(tensors);
  placement.gated_ = GatedFirsts(tensors);
  placement.stage_width_ = std::lcm(config.tensor, config.expert * config.expert_tensor);
  placement.layers_ = main_layers(tensors);
  if (splits && splits->decoder.layers() == placement.layers()) {
    placement.splits_ = *splits;
    return placement;
  }
  if (placement.layers() > 0) {
    const PipelineSplit split = SW_TRY(PipelineSplit::make(placement.layers(), config));
    placement.splits_ = StackSplits::of_one(split);
  }
  const auto [decoder, encoder] = placement.layers_;
  if (decoder > 0 && encoder > 0) {
    placement.splits_.encoder = SW_TRY(PipelineSplit::make(encoder, config));
  }
  return placement;
}

std::int64_t Placement::stage_of(std::string_view name, std::int64_t layer) const {
  if (const std::optional<LayerName> parts = split_layer_name(name)) {
    if (is_main_stack(parts->stack)) {
      const bool is_encoder = is_encoder_stack(parts->stack);
      const std::int64_t layers = is_encoder ? layers_.encoder : layers_.decoder;
      const PipelineSplit& split = is_encoder ? splits_.encoder : splits_.decoder;
      return layers > 0 ? split.stage_of(std::clamp<std::int64_t>(layer, 0, layers - 1)) : 0;
    }
    // Vision towers live on the first stage.
    if (!is_prediction_layer(name)) return 0;
  }
  const std::int64_t last = config_.pipeline - 1;
  if (is_prediction_layer(name)) {
    return splits_.prediction_chunk ? *splits_.prediction_chunk % config_.pipeline : last;
  }
  return is_behind_layers(name) ? last : 0;
}

ShardRule Placement::rule_of(const TensorDesc& tensor, bool stacked) const {
  const int axes = tensor.shape.size() - (stacked ? 1 : 0);
  return heads_.settled(shard_rule(tensor.name, axes, gated_.has(tensor)), tensor);
}

std::int64_t Placement::copies_of(const TensorDesc& tensor) const {
  const ShardRule rule = rule_of(tensor, is_stacked(split_layer_name(tensor.name), tensor));
  if (rule.axis >= 0) return 1;
  if (rule.is_expert && config_.expert_tensor != config_.tensor) return 1;
  return tensor_size_of(tensor.name, config_);
}

Result<OwnedChunks> Placement::place(const TensorDesc& tensor) const {
  const std::optional<LayerName> layer = split_layer_name(tensor.name);
  const bool stacked = is_stacked(layer, tensor);
  const int lead = stacked ? 1 : 0;
  const ShardRule rule = rule_of(tensor, stacked);
  const std::int64_t parts =
      rule.is_expert ? config_.expert_tensor : tensor_size_of(tensor.name, config_);
  const std::int64_t layers = stacked ? tensor.shape[0] : 1;
  const std::int64_t experts = rule.expert_axis >= 0 ? tensor.shape[rule.expert_axis + lead] : 1;

  std::vector<Interval> intervals{{0, 0, 0}};
  if (rule.axis >= 0) {
    const std::int64_t extent = tensor.shape[rule.axis + lead];
    if (extent % (parts * (rule.in_two ? 2 : 1)) != 0) {
      if (rule.vocabulary) {
        return fail(Code::kVocabularyNotDivisible,
                    "tensor {}: {} vocabulary rows, expected a multiple of --tp {}; pad them with "
                    "--make-vocab-size-divisible-by N",
                    tensor.name, extent, parts);
      }
      return fail(Code::kNotDivisible,
                  "tensor {}: axis {} is {} long, expected a multiple of {}; choose another {}",
                  tensor.name, rule.axis + lead, extent, parts * (rule.in_two ? 2 : 1),
                  flag_of(tensor.name, rule, config_));
    }
    intervals = cut_axis(extent, parts, rule.in_two);
  }
  if (rule.expert_axis >= 0 && experts % config_.expert != 0) {
    return fail(Code::kNotDivisible, "tensor {}: {} experts, expected a multiple of --ep {}",
                tensor.name, experts, config_.expert);
  }

  OwnedChunks chunks(tensor.shape.size());
  chunks.reserve(static_cast<std::size_t>(layers * experts) * intervals.size());
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t stage = stage_of(tensor.name, stacked                 ? l
                                                     : layer && layer->index ? *layer->index
                                                                             : 0);
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::int64_t expert_rank = rule.expert_axis >= 0 ? e / (experts / config_.expert) : 0;
      for (const Interval& interval : intervals) {
        OwnedChunk chunk{Box::whole(tensor.shape), stage * stage_width_ + interval.part};
        if (stacked) {
          chunk.box.origin[0] = l;
          chunk.box.shape[0] = 1;
        }
        if (rule.expert_axis >= 0) {
          chunk.box.origin[rule.expert_axis + lead] = e;
          chunk.box.shape[rule.expert_axis + lead] = 1;
          chunk.owner += expert_rank * config_.expert_tensor;
        }
        if (rule.axis >= 0) {
          chunk.box.origin[rule.axis + lead] = interval.begin;
          chunk.box.shape[rule.axis + lead] = interval.length;
        }
        chunks.push_back(chunk);
      }
    }
  }
  return chunks;
}

std::int64_t Placement::rank_of_object(std::string_view name) const {
  const std::optional<LayerName> layer = split_layer_name(name);
  std::int64_t index = layer && layer->index ? *layer->index : 0;
  // A stacked module's object names its layer in `/shard_{layer}[.{expert}]_{layers}...`.
  constexpr std::string_view kShard = "/shard_";
  const std::size_t shard = name.find(kShard);
  if (layer && !layer->index && shard != std::string_view::npos) {
    const std::string_view digits = name.substr(shard + kShard.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), index);
  }
  return stage_of(name.substr(0, shard), index) * stage_width_;
}

}  // namespace shardwright
