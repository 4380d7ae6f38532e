// SPDX-License-Identifier: Apache-2.0
#include "layout/pipeline_split.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "base/fail.h"

namespace shardwright {

Result<PipelineSplit> PipelineSplit::make(std::int64_t layers, const ParallelConfig& config) {
  if (layers == 0) return of_counts({}, config.pipeline);
  const std::int64_t chunks = config.pipeline * config.virtual_pipeline;
  if (layers % chunks == 0) {
    return of_counts(std::vector(static_cast<std::size_t>(chunks), layers / chunks),
                     config.pipeline);
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
  std::vector<std::int64_t> counts(static_cast<std::size_t>(others), (layers - best) / others);
  counts.push_back(best);
  PipelineSplit split = of_counts(counts, config.pipeline);
  split.uneven_last_ = best;
  return split;
}

PipelineSplit PipelineSplit::of_counts(const std::vector<std::int64_t>& counts,
                                       std::int64_t stages) {
  PipelineSplit split;
  split.stages_ = stages;
  std::partial_sum(counts.begin(), counts.end(), std::back_inserter(split.ends_));
  return split;
}

std::int64_t PipelineSplit::chunk_of(std::int64_t layer) const {
  const auto above = std::ranges::upper_bound(ends_, layer);
  const auto chunk = above - ends_.begin();
  return std::max<std::int64_t>(std::min<std::int64_t>(chunk, std::ssize(ends_) - 1), 0);
}

// Virtual stages go round the ranks.
std::int64_t PipelineSplit::stage_of(std::int64_t layer) const { return chunk_of(layer) % stages_; }

std::int64_t PipelineSplit::virtual_stage_of(std::int64_t layer) const {
  return chunk_of(layer) / stages_;
}

LayerRange PipelineSplit::layers_of(std::int64_t stage, std::int64_t virtual_stage) const {
  if (ends_.empty()) return {};
  const auto chunk = static_cast<std::size_t>(virtual_stage * stages_ + stage);
  return {chunk == 0 ? 0 : ends_[chunk - 1], ends_[chunk]};
}

}  // namespace shardwright
