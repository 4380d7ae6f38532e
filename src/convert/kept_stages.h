// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "layout/pipeline_split.h"
#include "shardwright/checkpoint.h"
#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// How the run itself shares its layers out, where a target of sizes `parallel` has the same
/// pipeline stages, virtual ones included: whoever goes on with the run's own flags must find the
/// same layers in the same files. `run`: its arguments; `tensors`: of the target. Nothing for other
/// sizes, and where the arguments do not fit the model, or it has two stacks of layers.
[[nodiscard]] std::optional<StackSplits> kept_stages(const Arguments& run,
                                                     const ParallelConfig& parallel,
                                                     std::span<const TensorDesc> tensors);

}  // namespace shardwright
