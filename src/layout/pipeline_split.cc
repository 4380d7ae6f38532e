// SPDX-License-Identifier: Apache-2.0
#include "layout/pipeline_split.h"

#include <algorithm>
#include <cstdlib>

#include "base/fail.h"

namespace shardwright {

Result<PipelineSplit> PipelineSplit::make(std::int64_t layers, const ParallelConfig& config) {
  PipelineSplit split;
  split.stages_ = config.pipeline;
  const std::int64_t chunks = config.pipeline * config.virtual_pipeline;
  if (layers % chunks == 0) {
    split.per_stage_ = layers / config.pipeline;
    split.per_chunk_ = std::max<std::int64_t>(layers / chunks, 1);
    return split;
  }
  if (config.virtual_pipeline > 1) {
    return fail(Code::kNotDivisible,
                "{} layers: expected a multiple of {} (--pp {} times --vpp {}); choose other sizes",
                layers, chunks, config.pipeline, config.virtual_pipeline);
  }
  if (layers < config.pipeline) {
    return fail(Code::kNotDivisible, "{} layers: expected at least one per stage of --pp {}",
                layers, config.pipeline);
  }
  // layers is no multiple of the stages, so there are at least two.
  const std::int64_t others = config.pipeline - 1;
  // Of the counts that leave the others a multiple, the one nearest to an even share: the last one
  // below that, or the first one above.
  const std::int64_t share = layers / config.pipeline;
  const std::int64_t below = share - ((share - layers) % others + others) % others;
  const std::int64_t above = below + others;
  const auto distance = [&](std::int64_t count) {
    return std::abs(count * config.pipeline - layers);
  };
  const bool take_above =
      below < 1 || (above <= layers - others && distance(above) < distance(below));
  const std::int64_t best = take_above ? above : below;
  split.uneven_last_ = best;
  split.per_stage_ = (layers - best) / others;
  split.per_chunk_ = split.per_stage_;
  return split;
}

std::int64_t PipelineSplit::stage_of(std::int64_t layer) const {
  const std::int64_t chunk = layer / per_chunk_;
  // Virtual stages go round the ranks; an uneven last stage may be the longest and keeps its rest.
  return uneven_last_ > 0 ? std::min(chunk, stages_ - 1) : chunk % stages_;
}

std::int64_t PipelineSplit::virtual_stage_of(std::int64_t layer) const {
  return uneven_last_ > 0 ? 0 : layer / per_chunk_ / stages_;
}

}  // namespace shardwright
