// SPDX-License-Identifier: Apache-2.0
#include "compare/recorded_optimizer.h"

#include "model/arguments.h"
#include "state/recorded_run.h"

namespace shardwright {

RecordedOptimizer recorded_optimizer(const Checkpoint& checkpoint) {
  const Arguments& run = checkpoint.arguments;
  const bool is_rounded = is_true(run, "bf16") || is_true(run, "fp16");
  return {named_optimizer(run), is_rounded && !checkpoint.location.traits.weights_are_main};
}

}  // namespace shardwright
