// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "layout/optimizer_buckets.h"
#include "shardwright/tensor.h"
#include "state/param_state.h"

namespace shardwright {

/// A parameter of a rank, as the model in its file has it.
struct RankParameter {
  TensorDesc desc;
  LocatedTensor place;
  BufferedParameter buffered;
};

/// The files of a rank that have to do with its optimizer.
struct RankOptimizerFiles {
  const ReadableFile* model = nullptr;    ///< `model_optim_rng.pt`
  const ReadableFile* buffers = nullptr;  ///< `distrib_optim.pt`, or null
};

/// The states of a rank's parameters.
struct RankOptimizer {
  bool is_distributed = false;  ///< the places are in `distrib_optim.pt`
  /// Parallel to the parameters; nullopt for those whose states another rank keeps.
  std::vector<std::optional<StatePlaces>> states;
  std::vector<bool> weight_is_master;  ///< parallel to them: its place is in the model's file
  std::optional<std::int64_t> step;    ///< where each parameter's state says it
  bool has_adam_beside = false;        ///< beside Muon or Lion: then no part is distributed
  /// Whether it says so of some parameters, or of none: FP32Optimizer, over weights of float32.
  bool has_own_masters = true;
};

/// Name, dtype and shape of each.
[[nodiscard]] std::vector<TensorDesc> descs_of(std::span<const RankParameter> parameters);

/// Finds the states of a rank's `parameters`, which stand in the model's order: those of Megatron's
/// Float16Optimizer and FP32Optimizer around torch's or another's Adam, SGD, Lion or Muon, and of
/// its DistributedOptimizer, chained or not.
/// `bucket_size` is that of the run, for a distributed one. Errors: kOptimizerUnsupported with
/// what was found.
/// Sources: state_dict in megatron/core/optimizer/{optimizer,distrib_optimizer}.py.
[[nodiscard]] Result<RankOptimizer> read_rank_optimizer(const RankOptimizerFiles& files,
                                                        std::span<const RankParameter> parameters,
                                                        std::optional<std::int64_t> bucket_size);

}  // namespace shardwright
