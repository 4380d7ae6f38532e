// SPDX-License-Identifier: Apache-2.0
#include "convert/kept_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "layout/hybrid_stages.h"
#include "model/arguments.h"
#include "state/recorded_run.h"
#include "state/run_split.h"

namespace shardwright {

std::optional<StackSplits> kept_stages(const Arguments& run, const ParallelConfig& parallel,
                                       const MainLayers& layers) {
  const AxisSizes sizes = recorded_run(run).sizes;
  const bool has_its_stages = parallel.pipeline > 1 && sizes.pipeline == parallel.pipeline &&
                              sizes.virtual_pipeline.value_or(1) == parallel.virtual_pipeline;
  if (!has_its_stages || (layers.decoder > 0 && layers.encoder > 0)) return std::nullopt;
  auto split = split_of_run(run, std::max(layers.decoder, layers.encoder), parallel);
  if (!split) return std::nullopt;
  StackSplits kept = StackSplits::of_one(*std::move(split));
  kept.prediction_chunk = prediction_chunk_of_run(run, parallel);
  return kept;
}

std::string said_of_stages(const Arguments& run) {
  constexpr std::array<std::string_view, 5> kNames = {
      "pipeline_model_parallel_layout", "decoder_first_pipeline_num_layers",
      "decoder_last_pipeline_num_layers", "account_for_embedding_in_pipeline_split",
      "account_for_loss_in_pipeline_split"};
  std::string said;
  const auto add = [&](std::string_view name, const ArgValue& value) {
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", name, to_string(value));
  };
  for (const std::string_view name : kNames) {
    const ArgValue* const value = find_set(run, name);
    if (value != nullptr && *value != ArgValue{false}) add(name, *value);
  }
  constexpr std::string_view kPattern = "hybrid_layer_pattern";
  const ArgValue* const pattern = find_set(run, kPattern);
  const auto* text = pattern == nullptr ? nullptr : std::get_if<std::string>(pattern);
  if (text != nullptr && tells_stages(*text)) add(kPattern, *pattern);
  return said;
}

}  // namespace shardwright
