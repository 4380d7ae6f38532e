// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Layers from `first` on, before `end`.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// Which pipeline stage holds which decoder layer (Megatron-Core's get_transformer_layer_offset).
class PipelineSplit {
 public:
  /// An even split where the layers divide; else the last stage takes the number nearest to even
  /// that lets the others share the rest evenly, as `--decoder-last-pipeline-num-layers` would say.
  /// With virtual stages layers must divide by pipeline × virtual_pipeline. Error: kNotDivisible.
  [[nodiscard]] static Result<PipelineSplit> make(std::int64_t layers,
                                                  const ParallelConfig& config);

  /// `counts`: of each virtual stage in turn, how many layers each pipeline stage has, 0 where
  /// none. REQUIRES: a multiple of `stages` of them, none negative, their sum does not overflow.
  [[nodiscard]] static PipelineSplit of_counts(const std::vector<std::int64_t>& counts,
                                               std::int64_t stages);

  /// The last stage for what lies behind all layers.
  [[nodiscard]] std::int64_t stage_of(std::int64_t layer) const;
  /// Which of its stage's virtual stages holds a layer; 0 without them.
  [[nodiscard]] std::int64_t virtual_stage_of(std::int64_t layer) const;
  /// The layers of a virtual stage of a stage, which may be none. REQUIRES: both exist.
  [[nodiscard]] LayerRange layers_of(std::int64_t stage, std::int64_t virtual_stage) const;
  /// How many there are.
  [[nodiscard]] std::int64_t layers() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Layers of the last stage, or 0 when the split is even.
  [[nodiscard]] std::int64_t uneven_last() const { return uneven_last_; }

 private:
  [[nodiscard]] std::int64_t chunk_of(std::int64_t layer) const;

  std::int64_t stages_ = 1;
  std::vector<std::int64_t> ends_;  ///< behind the last layer of each virtual stage of each stage
  std::int64_t uneven_last_ = 0;
};

/// How stages share out a model's layers. A model with two stacks (T5) has a split of each.
struct StackSplits {
  PipelineSplit decoder;
  PipelineSplit encoder;
  /// Which chunk, virtual stage x stages + stage, has the layers for multi-token prediction; the
  /// last one where nothing is said.
  std::optional<std::int64_t> prediction_chunk = std::nullopt;

  /// Of a model with one stack, whichever it is.
  static StackSplits of_one(const PipelineSplit& split) { return {split, split}; }
};

}  // namespace shardwright
