// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "layout/pipeline_split.h"

namespace shardwright {

/// What of a `hybrid_layer_pattern` is the decoder's: all before the slash.
[[nodiscard]] std::string_view decoder_pattern(std::string_view pattern);

/// Whether a `hybrid_layer_pattern` says by bars which layers a stage of the pipeline has.
[[nodiscard]] bool tells_stages(std::string_view pattern);

/// A `hybrid_layer_pattern` whose bars are where a split begins another stage of the pipeline:
/// `M*G-/MM` of two stages is `M*|G-/MM`. What stands behind a slash is not of the decoder and
/// stays. A pattern of another number of layers stays as it is. Source: select_pipeline_segment in
/// megatron/core/models/hybrid/hybrid_layer_allocation.py.
[[nodiscard]] std::string with_stages(std::string_view pattern, std::int64_t layers,
                                      const PipelineSplit& split);

}  // namespace shardwright
