// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_shards.h"

#include <algorithm>
#include <unordered_map>

#include "layout/adapter_shards.h"
#include "layout/latent_fusion.h"
#include "layout/layer_name.h"
#include "layout/mixer_parts.h"
#include "layout/model_head.h"
#include "layout/pipeline_split.h"
#include "layout/shard_rule.h"
#include "layout/tower.h"

namespace shardwright {
namespace {

FirstLayers first_layers_of(const StageContents& stage) {
  return {stage.layers.first, stage.encoder_layers.first};
}

bool belongs(const TensorDesc& tensor, const StageContents& stage) {
  const std::optional<LayerName> layer = split_layer_name(tensor.name);
  if (layer && is_main_stack(layer->stack)) {
    const LayerRange own = is_encoder_stack(layer->stack) ? stage.encoder_layers : stage.layers;
    return layer->index && *layer->index >= own.first && *layer->index < own.end;
  }
  const std::string_view name = tensor.name;
  if (is_on_each_stage(name)) return true;
  if (is_prediction_layer(name)) return stage.has_prediction;
  if (name.find("decoder.final_layernorm.") != std::string_view::npos) return stage.has_final_norm;
  if (is_behind_layers(name)) return stage.has_end;
  return name.find("embedding.") != std::string_view::npos ? stage.has_embedding : stage.has_rest;
}

class Sharder {
 public:
  Sharder(std::span<const TensorDesc> canonical, const ParallelConfig& config,
          const StageContents& stage, const LegacyModules& modules)
      : canonical_(canonical),
        config_(config),
        stage_(stage),
        modules_(modules),
        heads_(canonical),
        gated_(canonical),
        fusion_(modules.fused_latent ? canonical : std::span<const TensorDesc>()) {}

  std::vector<LegacyShard> run() {
    for (std::size_t i = 0; i < canonical_.size(); ++i) {
      if (belongs(canonical_[i], stage_)) add(i, canonical_[i].name);
    }
    for (std::size_t i = 0; stage_.copies_embedding && i < canonical_.size(); ++i) {
      constexpr std::string_view kEmbedding = "embedding.word_embeddings.weight";
      const std::string& name = canonical_[i].name;
      if (name.ends_with(kEmbedding)) {
        add(i, name.substr(0, name.size() - kEmbedding.size()) + "output_layer.weight");
      }
    }
    for (LegacyShard& shard : shards_) {
      std::stable_sort(shard.runs.begin(), shard.runs.end(),
                       [](const ShardRun& a, const ShardRun& b) { return a.order < b.order; });
    }
    return std::move(shards_);
  }

 private:
  void add(std::size_t index, std::string_view name) {
    const TensorDesc& tensor = canonical_[index];
    ShardRule rule =
        heads_.settled(shard_rule(name, tensor.shape.size(), gated_.has(tensor)), tensor);
    if (const auto fused = fusion_.place_of(name)) {
      if (fused->is_cut) rule.axis = 0;
      add_runs(index, {fused->name, fused->order}, rule, std::nullopt);
      return;
    }
    if (rule.expert_axis < 0) {
      add_runs(index, split_mixer_part(name), rule, std::nullopt);
      return;
    }
    const std::int64_t per_rank = tensor.shape[0] / config_.expert;
    for (std::int64_t e = 0; e < per_rank; ++e) add_runs(index, {name, -1}, rule, e);
  }

  // `place` is the name of the rank's tensor, and which part of it this one is.
  void add_runs(std::size_t index, std::pair<std::string_view, int> place, const ShardRule& rule,
                std::optional<std::int64_t> expert) {
    const TensorDesc& tensor = canonical_[index];
    const auto& [whole, part] = place;
    LegacyShard& shard =
        shard_of(legacy_from_canonical(whole, first_layers_of(stage_), expert, modules_));
    ShardRun run{index, Box::whole(tensor.shape), part, expert.has_value()};
    run.is_expert = rule.is_expert;
    run.axis = rule.axis;
    run.ways = rule.is_expert ? config_.expert_tensor : tensor_size_of(tensor.name, config_);
    if (expert) {
      run.experts = tensor.shape[0] / config_.expert;
      run.box.origin[0] = *expert;
      run.box.shape[0] = 1;
    }
    const std::int64_t halves = rule.in_two ? 2 : 1;
    for (std::int64_t half = 0; half < halves; ++half) {
      if (rule.axis >= 0) {
        const std::int64_t own = tensor.shape[rule.axis] / (run.ways * halves);
        run.box.origin[rule.axis] = half * own * run.ways;
        run.box.shape[rule.axis] = own;
      }
      append(shard, tensor.dtype, run);
    }
  }

  static void append(LegacyShard& shard, DType dtype, const ShardRun& run) {
    const int lead = run.one_expert ? 1 : 0;
    Dims shape;
    for (int axis = lead; axis < run.box.axes(); ++axis) shape.push_back(run.box.shape[axis]);
    if (shard.runs.empty()) {
      shard.desc.dtype = dtype;
      shard.desc.shape = shape;
    } else {
      shard.desc.shape[0] += shape[0];
    }
    shard.runs.push_back(run);
  }

  LegacyShard& shard_of(const std::string& name) {
    const auto [found, is_new] = by_name_.emplace(name, shards_.size());
    if (is_new) shards_.push_back({{name, DType::kU8, {}}, {}});
    return shards_[found->second];
  }

  std::span<const TensorDesc> canonical_;
  const ParallelConfig& config_;
  const StageContents& stage_;
  const LegacyModules& modules_;
  OutputHeads heads_;
  GatedFirsts gated_;
  LatentFusion fusion_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<LegacyShard> shards_;
};

}  // namespace

Box box_of(const ShardRun& run, const LegacyRank& rank) {
  Box box = run.box;
  if (run.one_expert) box.origin[0] += rank.expert * run.experts;
  if (run.axis >= 0) {
    const std::int64_t number = run.is_expert ? rank.expert_tensor : rank.tensor % run.ways;
    box.origin[run.axis] += number * box.shape[run.axis];
  }
  return box;
}

std::vector<StageContents> stage_contents(const ParallelConfig& config, const StackSplits& splits,
                                          std::int64_t pipeline_rank, bool has_mtp, bool is_tied) {
  std::vector<StageContents> stages;
  const std::int64_t last = config.pipeline * config.virtual_pipeline - 1;
  for (std::int64_t v = 0; v < config.virtual_pipeline; ++v) {
    const std::int64_t chunk = v * config.pipeline + pipeline_rank;
    StageContents stage{.layers = splits.decoder.layers_of(pipeline_rank, v),
                        .encoder_layers = splits.encoder.layers_of(pipeline_rank, v)};
    stage.has_rest = chunk == 0;
    stage.has_end = chunk == last;
    stage.has_prediction = has_mtp && chunk == splits.prediction_chunk.value_or(last);
    // MTP layers take the decoder's output after its norm, which is then with the last layer.
    const bool has_last_layer =
        stage.layers.first < stage.layers.end && stage.layers.end == splits.decoder.layers();
    stage.has_final_norm = has_mtp ? has_last_layer : stage.has_end;
    // They embed the next tokens themselves, so their stage has its own copy.
    stage.has_embedding = chunk == 0 || stage.has_prediction;
    stage.copies_embedding = stage.has_end && is_tied && config.pipeline > 1;
    stages.push_back(stage);
  }
  return stages;
}

std::vector<LegacyShard> legacy_shards(std::span<const TensorDesc> canonical,
                                       const ParallelConfig& config, const StageContents& stage,
                                       const LegacyModules& modules) {
  return Sharder(canonical, config, stage, modules).run();
}

}  // namespace shardwright
