// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layout/legacy_names.h"
#include "layout/legacy_parts.h"
#include "layout/pipeline_split.h"
#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A run of a rank's tensor along its first axis, and the box of a canonical tensor that it is.
struct ShardRun {
  std::size_t canonical = 0;  ///< index of the canonical tensor
  Box box;                    ///< in it, for the rank whose coordinates are all 0
  int order = 0;              ///< of a mixer's parts, which canonical tensors may list otherwise
  bool one_expert = false;    ///< axis 0 of the box is one expert, an axis the rank's tensor lacks
  std::int64_t experts = 0;   ///< then: of each rank
  int axis = -1;              ///< the axis that tensor ranks share out; -1 where all hold the same
  std::int64_t ways = 1;      ///< among how many of them
  bool is_expert = false;     ///< among the experts' tensor ranks
};

/// The box of a rank.
[[nodiscard]] Box box_of(const ShardRun& run, const LegacyRank& rank);

/// A tensor of one rank's state dict. Its runs follow one another along its first axis.
struct LegacyShard {
  TensorDesc desc;
  std::vector<ShardRun> runs;
};

/// Which part of a model a state dict is for.
struct StageContents {
  LayerRange layers;               ///< of the decoder
  LayerRange encoder_layers = {};  ///< of BERT's stack, or T5's beside the decoder
  bool has_embedding = false;      ///< the first stage, and one with MTP layers
  bool has_rest = false;           ///< the first stage: what has no other place (vision towers)
  bool has_final_norm = false;     ///< the decoder's, but a hybrid model's
  bool has_prediction = false;     ///< the one with MTP layers
  bool has_end = false;            ///< the last stage: what else is behind all layers
  bool copies_embedding = false;   ///< the output layer is tied and the embedding elsewhere
};

/// What each virtual stage of one pipeline rank holds; `splits` are those of `config`. Sources:
/// Megatron-Core's GPTModel, and has_final_layernorm_in_this_stage of its TransformerBlock.
[[nodiscard]] std::vector<StageContents> stage_contents(const ParallelConfig& config,
                                                        const StackSplits& splits,
                                                        std::int64_t pipeline_rank, bool has_mtp,
                                                        bool is_tied);

/// The tensors of a rank's state dict, the reverse of legacy_parts: all ranks of a pipeline stage
/// have the same ones, and box_of() says what of each. `canonical` are all of the model's tensors,
/// one per layer. REQUIRES: Placement::place accepts each of them for `config`.
[[nodiscard]] std::vector<LegacyShard> legacy_shards(std::span<const TensorDesc> canonical,
                                                     const ParallelConfig& config,
                                                     const StageContents& stage,
                                                     const LegacyModules& modules);

}  // namespace shardwright
