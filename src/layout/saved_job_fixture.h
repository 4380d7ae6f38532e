// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// A run that saved a checkpoint, fully parallel.
struct SavedJob {
  std::vector<TensorDesc> tensors;
  ParallelConfig parallel;
  std::int64_t data = 1;
  /// Tensor ranks saved what all of them hold alike each for itself: as X.__tp_replica_N.
  bool has_copies = false;
};

/// The checkpoint, its copies folded: what lies where in the two files of each rank, as
/// Megatron-Core and torch share it out.
[[nodiscard]] Catalog saved(const SavedJob& job);

/// A Llama-like model of four layers: stacked, or each layer's tensors by themselves.
[[nodiscard]] std::vector<TensorDesc> dense_model(bool stacked = true);
/// The same with eight routed experts in each layer and a shared one.
[[nodiscard]] std::vector<TensorDesc> sparse_model(bool stacked = true);
/// Adds master weights and moments.
[[nodiscard]] std::vector<TensorDesc> with_optimizer(std::vector<TensorDesc> tensors);

}  // namespace shardwright
