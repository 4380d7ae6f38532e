// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layout/pipeline_split.h"
#include "shardwright/checkpoint.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Which pipeline stage of a run held which decoder layer, by its arguments: by
/// `pipeline_model_parallel_layout`, by the bars of `hybrid_layer_pattern`, by the layers of the
/// first and the last stage, or evenly, the embedding and the loss counted where the run did.
/// `config`: its parallel sizes. Error: kNotDivisible where the arguments don't fit each other.
/// REQUIRES: no size of `config` is below 1. Source: Megatron-Core's
/// pipeline_parallel_layer_layout.py and get_num_layers_to_build.
[[nodiscard]] Result<PipelineSplit> split_of_run(const Arguments& arguments, std::int64_t layers,
                                                 const ParallelConfig& config);

/// Which chunk has the run's MTP layers (see StackSplits), where its arguments have a layout that
/// says so. REQUIRES: split_of_run() accepts the arguments.
[[nodiscard]] std::optional<std::int64_t> prediction_chunk_of_run(const Arguments& arguments,
                                                                  const ParallelConfig& config);

/// What the arguments say of stages but how many there are, as `NAME VALUE, ...`; empty where they
/// share the layers out evenly.
[[nodiscard]] std::string said_of_stages(const Arguments& arguments);

}  // namespace shardwright
