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

/// How many rows all heads have for queries, as a params.json or config.json says of a model
/// `width` wide; nullopt where it doesn't.
[[nodiscard]] std::optional<std::int64_t> told_query_rows(std::string_view settings,
                                                          std::int64_t width);

/// The same of one head.
[[nodiscard]] std::optional<std::int64_t> told_head_size(std::string_view settings,
                                                         std::int64_t width);

}  // namespace shardwright
