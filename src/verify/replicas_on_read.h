// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "io/source_files.h"
#include "shardwright/error.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Compares what is stored several times when a tensor made of it is read first, where to compare
/// all of a checkpoint for the sake of one tensor would be too much: each rank's file may repeat
/// all of a model. Thread-safe.
class ReplicasOnRead {
 public:
  /// Both outlive this.
  ReplicasOnRead(const Plan& plan, SourceFiles& files);

  /// `target`: a number in the plan's tensors. Errors: kReplicasDiffer, those of reading.
  [[nodiscard]] Status compare(std::size_t target);

 private:
  const Plan& plan_;
  SourceFiles& files_;
  std::mutex mutex_;
  std::vector<bool> is_compared_;  // by source tensor; empty where nothing is stored twice
};

}  // namespace shardwright
