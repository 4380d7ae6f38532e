// SPDX-License-Identifier: Apache-2.0
#include "convert/kept_stages.h"

#include <algorithm>
#include <utility>

#include "layout/layer_name.h"
#include "state/recorded_run.h"
#include "state/run_split.h"

namespace shardwright {

std::optional<StackSplits> kept_stages(const Arguments& run, const ParallelConfig& parallel,
                                       std::span<const TensorDesc> tensors) {
  const MainLayers layers = main_layers(tensors);
  const RecordedRun recorded = recorded_run(run);
  const AxisSizes& sizes = recorded.sizes;
  // Stages of their own making: what is said of them is not what the target's are.
  if (recorded.chunk_order != ChunkOrder::kInterleaved || !noop_layers_of(run).empty()) {
    return std::nullopt;
  }
  const bool has_its_stages = parallel.pipeline > 1 && sizes.pipeline == parallel.pipeline &&
                              sizes.virtual_pipeline.value_or(1) == parallel.virtual_pipeline;
  if (!has_its_stages || (layers.decoder > 0 && layers.encoder > 0)) return std::nullopt;
  auto split = split_of_run(run, std::max(layers.decoder, layers.encoder), parallel);
  if (!split) return std::nullopt;
  StackSplits kept = StackSplits::of_one(*std::move(split));
  kept.prediction_chunk = prediction_chunk_of_run(run, parallel);
  // A layout that gives MTP layers a stage is none of a model that lost them (--mtp drop).
  const bool has_mtp = std::ranges::any_of(
      tensors, [](const TensorDesc& tensor) { return is_prediction_layer(tensor.name); });
  if (kept.prediction_chunk && !has_mtp) return std::nullopt;
  return kept;
}

}  // namespace shardwright
