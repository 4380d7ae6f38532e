// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "layout/shard_rule.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// Modules at the root of a model that give a reward, a value or classes instead of tokens.
/// Sources: transformers' ForSequenceClassification (`score`) and ForTokenClassification (`score`,
/// `classifier`), trl and InternLM2 (`v_head`), OpenRLHF (`score`, `value_head`, `reward_head`),
/// NeMo-Aligner (`rm_head`).
inline constexpr std::array<std::string_view, 6> kHeadModules = {
    "score", "classifier", "v_head", "value_head", "reward_head", "rm_head"};

/// Whether a name begins with one of these modules.
[[nodiscard]] bool is_in_head(std::string_view name);

/// The same of a name that may stand inside a part of the model (`language_model.score.weight`).
[[nodiscard]] bool has_head_name(std::string_view name);

/// Which output layers are heads. Trainers of rewards and values put a plain linear in the output
/// layer's place, which every tensor rank holds as a whole, under the same name: only its rows
/// tell, which are at most half as many as there are tokens. Sources: LinearForLastLayer of verl
/// and slime, OutputLayerLinear of ms-swift.
class OutputHeads {
 public:
  OutputHeads() = default;
  /// `tensors`: all of a model, or the parts of it that one rank holds.
  explicit OutputHeads(std::span<const TensorDesc> tensors);

  /// Of what has no embedding to be compared with nothing is a head.
  [[nodiscard]] bool has(const TensorDesc& tensor) const;
  /// `rule` as it is for this tensor.
  [[nodiscard]] ShardRule settled(ShardRule rule, const TensorDesc& tensor) const;
  /// Whether the tensor has a row for each token, padding included: a head has none.
  [[nodiscard]] bool has_vocabulary_rows(const TensorDesc& tensor) const;

 private:
  std::set<std::int64_t> token_rows_;
};

}  // namespace shardwright
