// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/legacy_evidence.h"

namespace shardwright {

/// What the names and shapes in one rank's file show about its place in the run.
struct ShardContents {
  bool has_embedding = false;   ///< of the language model
  bool has_final_norm = false;  ///< likewise
  bool has_experts = false;
  std::int64_t layers = 0;                      ///< decoder layers, all virtual stages together
  std::optional<std::int64_t> router_rows;      ///< experts of the whole model
  std::optional<std::int64_t> local_experts;    ///< where names or shapes tell them apart
  std::optional<std::int64_t> vocabulary_rows;  ///< of the embedding
  std::optional<std::int64_t> head_rows;        ///< of the output layer
  std::string hyper_connection_head;            ///< a name with `hc_head`, if there is one
};

[[nodiscard]] ShardContents contents_of(const RankSample& sample);
/// Of each of its virtual stages.
[[nodiscard]] std::vector<ShardContents> contents_of_chunks(const RankSample& sample);

/// Whether a tensor lives on the experts' grid of ranks.
[[nodiscard]] bool is_expert_tensor(std::string_view name);

}  // namespace shardwright
