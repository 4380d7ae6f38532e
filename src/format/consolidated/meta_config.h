// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/notes.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A config.json for a Llama of which Meta's params.json and the tensors, under Meta's names, tell.
/// `notes` say what is guessed. Errors: kJsonCorrupt; kConfigMissing for what neither tells.
[[nodiscard]] Result<std::string> config_from_params(std::string_view params,
                                                     const Catalog& catalog, Notes& notes);

/// The heads of a model, as its params.json or config.json says.
struct ToldHeads {
  std::int64_t count = 0;            ///< more than 0
  std::optional<std::int64_t> size;  ///< rows of one, where that is said

  /// Of a model that is so wide: the rows of all for queries, and those of one. nullopt for what
  /// can't be.
  [[nodiscard]] std::optional<std::int64_t> rows_in(std::int64_t width) const;
  [[nodiscard]] std::optional<std::int64_t> size_in(std::int64_t width) const;
};

/// nullopt where settings say nothing of heads.
[[nodiscard]] std::optional<ToldHeads> told_heads(std::string_view settings);

}  // namespace shardwright
