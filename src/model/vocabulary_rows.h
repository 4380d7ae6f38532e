// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/mapping_file.h"

namespace shardwright {

/// How many rows of vocabulary tensors mean something; Megatron may hold padding behind them.
struct VocabularyRows {
  std::optional<std::int64_t> usual;  ///< where anything tells
  /// What single tensors have beyond those, by Megatron name: the embedding of Llama 3.2 Vision has
  /// eight rows for pictures that its head lacks.
  std::map<std::string, std::int64_t, std::less<>> beyond;

  /// Of a vocabulary tensor, or of an optimizer state of one.
  [[nodiscard]] std::optional<std::int64_t> of(std::string_view megatron) const;
};

/// What the family's rules say. Errors: those of selecting rules and of evaluating sizes.
[[nodiscard]] Result<VocabularyRows> vocabulary_rows(const Mapping& mapping,
                                                     const ModelSizes& sizes,
                                                     std::span<const TensorDesc> canonical);

/// How many rows of a vocabulary tensor mean something, by the rule that makes it: the first extent
/// of the shape that it states, the size `vocab` where it states none. REQUIRES: rule.vocabulary.
[[nodiscard]] Result<std::int64_t> rows_by_rule(const Rule& rule, const Scope& scope);

}  // namespace shardwright
