// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exec/execute.h"

namespace shardwright {

/// Other processes that do a part of a plan's pieces. Called by the thread that executes the plan,
/// in this order.
class PieceSharing {
 public:
  virtual ~PieceSharing() = default;
  /// The target's files are there, with all that is known before: others may write from now on.
  /// `run` says what is finished and is told of the rest; both stay where they are until the end.
  [[nodiscard]] virtual Status begin(const PieceList& pieces, WholeRun& run) = 0;
  /// The pieces that this process does. Its take() gives nothing when all are finished, whoever did
  /// them.
  [[nodiscard]] virtual PieceQueue& queue() = 0;
  /// Waits until what the others wrote is durable.
  [[nodiscard]] virtual Status finish() = 0;
  /// Work has failed: no other writes any more when this returns, unless it hangs.
  virtual void stop(const Error& error) = 0;
};

}  // namespace shardwright
