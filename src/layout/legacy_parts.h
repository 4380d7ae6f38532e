// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/legacy_names.h"
#include "layout/model_head.h"
#include "layout/rank_folder.h"
#include "layout/tower.h"
#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// How the rows of a query-key-value weight lie, by the version of the checkpoint.
enum class QkvOrder : std::uint8_t {
  kByGroup,    ///< 2.0 and later: per group of heads its queries, then key, then value
  kByHead,     ///< 1.x: [heads, head size, 3]
  kThreeFirst  ///< before: [3, heads, head size]
};

/// One state dict of a legacy checkpoint: whose it is, and what its names count from.
struct LegacyStage {
  ParallelConfig config;
  LegacyRank rank;
  FirstLayers first_layers = {};
  std::int64_t experts_per_rank = 0;  ///< 0 without experts
  /// `output_layer.weight` is a copy of the word embeddings (tied, and on another stage), or beside
  /// such a copy no part of the model: it has no parts.
  bool output_is_embedding = false;
  QkvOrder qkv_order = QkvOrder::kByGroup;
  std::int64_t heads_per_rank = 0;  ///< for the older orders, which have no groups
  /// Towers with tensor sizes of their own: rank t holds shard t mod E of E.
  TowerSizes towers = {};
  OutputHeads heads = {};  ///< by the rows of a rank's embedding
  /// A rank has `[V_r; W_r]` of a gated MLP, what is activated behind (GPT-NeoX).
  bool gate_is_second = false;
};

/// A piece of a rank's tensor and where it belongs.
struct LegacyPart {
  TensorDesc canonical;     ///< name and global shape; per layer, experts along axis 0
  Box box;                  ///< in the canonical tensor
  std::int64_t offset = 0;  ///< of the first element in the rank's tensor, in elements
  Dims strides;             ///< per axis of the box, in elements of the rank's tensor
};

/// Where the tensors of one rank's state dict belong in Megatron's global tensors: layers by their
/// global number, `[W_r; V_r]` of a gated MLP taken apart, experts by their global number.
/// `tensors` is the whole dict, because a tensor's meaning may hang on its neighbours (whether an
/// MLP is gated, how wide a mixer's parts are); parts[i] belong to tensors[i], whose elements lie
/// row-major. Errors: kShapeMismatch, kUnsupportedFormat (an expert beyond the rank's number).
/// Sources: state_dict_for_save_checkpoint of megatron/core/models, sharded_state_dict of the
/// modules.
[[nodiscard]] Result<std::vector<std::vector<LegacyPart>>> legacy_parts(
    std::span<const TensorDesc> tensors, const LegacyStage& stage);

}  // namespace shardwright
