// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "layout/adapter_shards.h"
#include "layout/layer_name.h"
#include "layout/model_head.h"
#include "layout/owned_chunks.h"
#include "layout/pipeline_split.h"
#include "layout/shard_rule.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Where Megatron-Core's ranks hold the pieces of torch_dist tensors: tensor, pipeline, expert and
/// expert-tensor parallelism; one data-parallel replica writes. Pure. Safe for concurrent use.
class Placement {
 public:
  /// `tensors` are all tensors of the checkpoint: layers are counted and gated MLPs recognised from
  /// them. `splits` says which stage has which layers, where it is of as many; else
  /// PipelineSplit::make. Errors: kNotDivisible, and kLimit for names that claim more layers than
  /// any model has.
  [[nodiscard]] static Result<Placement> make(
      std::span<const TensorDesc> tensors, const ParallelConfig& config,
      const std::optional<StackSplits>& splits = std::nullopt);

  /// The chunks of one tensor in order of origin. Error: kNotDivisible or kVocabularyNotDivisible
  /// with the tensor, the axis and the flag to change.
  [[nodiscard]] Result<OwnedChunks> place(const TensorDesc& tensor) const;
  /// How many tensor ranks hold each of its pieces alike, one behind another from the piece's
  /// owner: all of them where tensor parallelism does not cut the tensor, else 1. Experts are held
  /// by ranks of their own; those of what ETP does not cut count only where ETP is TP, so that a
  /// tensor rank is one of each expert.
  [[nodiscard]] std::int64_t copies_of(const TensorDesc& tensor) const;
  /// How a tensor is cut; `stacked`: its first axis counts layers.
  [[nodiscard]] ShardRule rule_of(const TensorDesc& tensor, bool stacked) const;
  /// The rank that writes an object (extra state, RNG) named like a tensor's module.
  [[nodiscard]] std::int64_t rank_of_object(std::string_view name) const;

  [[nodiscard]] std::int64_t world_size() const { return config_.pipeline * stage_width_; }
  /// Of the decoder, or of the encoder where there is no decoder.
  [[nodiscard]] const PipelineSplit& pipeline() const { return splits_.decoder; }
  [[nodiscard]] const StackSplits& splits() const { return splits_; }
  /// Likewise.
  [[nodiscard]] std::int64_t layers() const {
    return layers_.decoder > 0 ? layers_.decoder : layers_.encoder;
  }

 private:
  [[nodiscard]] std::int64_t stage_of(std::string_view name, std::int64_t layer) const;

  ParallelConfig config_;
  OutputHeads heads_;
  GatedFirsts gated_;
  StackSplits splits_;
  MainLayers layers_;
  std::int64_t stage_width_ = 1;  // ranks of one pipeline stage
};

}  // namespace shardwright
