// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Which pipeline stage holds which decoder layer (Megatron-Core's get_transformer_layer_offset).
class PipelineSplit {
 public:
  /// An even split where the layers divide; else the last stage takes the number nearest to even
  /// that lets the others share the rest evenly, as `--decoder-last-pipeline-num-layers` would say.
  /// With virtual stages layers must divide by pipeline × virtual_pipeline. Error: kNotDivisible.
  [[nodiscard]] static Result<PipelineSplit> make(std::int64_t layers,
                                                  const ParallelConfig& config);

  [[nodiscard]] std::int64_t stage_of(std::int64_t layer) const;
  /// Which of its stage's virtual stages holds a layer; 0 without them.
  [[nodiscard]] std::int64_t virtual_stage_of(std::int64_t layer) const;
  [[nodiscard]] std::int64_t layers_per_stage() const { return per_stage_; }
  /// Layers of the last stage, or 0 when the split is even.
  [[nodiscard]] std::int64_t uneven_last() const { return uneven_last_; }

 private:
  std::int64_t stages_ = 1;
  std::int64_t per_stage_ = 0;
  std::int64_t per_chunk_ = 0;  // layers of one virtual stage
  std::int64_t uneven_last_ = 0;
};

}  // namespace shardwright
