// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "layout/pipeline_split.h"
#include "shardwright/checkpoint.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Which pipeline stage of a run held which decoder layer, by its arguments: by
/// `pipeline_model_parallel_layout`, by the bars of `hybrid_layer_pattern`, by the layers of the
/// first and the last stage, or evenly, the embedding and the loss counted where the run did.
/// `config`: its parallel sizes. Errors: kNotDivisible where the arguments don't fit each other;
/// kUnsupportedFormat for a layout whose MTP layers aren't in the last stage. REQUIRES: no size of
/// `config` is below 1. Source: Megatron-Core's pipeline_parallel_layer_layout.py and
/// get_num_layers_to_build.
[[nodiscard]] Result<PipelineSplit> split_of_run(const Arguments& arguments, std::int64_t layers,
                                                 const ParallelConfig& config);

}  // namespace shardwright
