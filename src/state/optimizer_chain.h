// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/error.h"

namespace shardwright {

/// How a layout has the optimizers of experts.
struct ChainLayout {
  bool experts_apart = false;        ///< they are sharded otherwise than the other parameters
  bool experts_have_biases = false;  ///< so some of their parameters do not decay
  /// Whether the target goes on with an optimizer that shares out whole layers, where the run has
  /// one; files of ranks don't.
  bool may_share_out_layers = true;
};

/// Makes the `optimizer` of a common state that of a layout; whether it has other parts now.
/// Megatron-Core writes one optimizer's dict as it is, and those of a chain under 0, 1, …: experts
/// that are sharded apart have an optimizer of their own behind the one of the same kind, and Muon
/// or Lion have Adam behind them for what is no matrix. Its own loader can't go from one chain to
/// another. Optimizers that share out whole layers have groups of experts among the others. Errors:
/// those of pickle::encode. Source: get_megatron_optimizer and _get_megatron_emerging_optimizer in
/// megatron/core/optimizer/__init__.py, get_megatron_muon_optimizer.
[[nodiscard]] Result<bool> regroup_optimizer(pickle::Document& document, pickle::Value state,
                                             const ChainLayout& layout,
                                             std::vector<std::string>& notes);

/// A common state is of the run's first rank. Where that had no parameters for an optimizer of the
/// chain (experts of later pipeline stages), it has the list of master weights, without any, which
/// Megatron-Core then merges with those that other ranks have, and lacks the steps that all have
/// made. Takes the one away and adds the other. Source: dict_utils.merge in
/// megatron/core/dist_checkpointing, Float16OptimizerWithFloat16Params.sharded_state_dict.
void complete_idle_optimizers(pickle::Document& document, pickle::Value state);

}  // namespace shardwright
