// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The output head of a model that has none of its own, because it is the embedding.
struct TiedHead {
  std::string embedding;
  std::string head;
  bool is_stored = false;  ///< the files have one nevertheless
};

/// The head that repeats the embedding, by the words of a config.json and the model's names;
/// nullopt where there is none. Error: kJsonCorrupt.
[[nodiscard]] Result<std::optional<TiedHead>> find_tied_head(std::string_view config_json,
                                                             std::span<const TensorDesc> model);

/// Whether the files of a tied model have its head in place of the embedding: savers that write
/// memory which tensors share once do so, under the first of the names (safetensors' save_model).
[[nodiscard]] bool has_head_alone(std::string_view config_json, std::span<const TensorDesc> model);

/// The names of a model's only embedding and of the head that goes with it, where it has none.
[[nodiscard]] std::optional<TiedHead> missing_head(std::span<const TensorDesc> model);

/// The tensors of a model's output layer; none where that is the embedding.
[[nodiscard]] std::vector<std::string> output_layer_names(std::span<const TensorDesc> model);

/// How many numbers the output layer takes for a token, by its weight's shape or the embedding's;
/// nullopt where nothing tells.
[[nodiscard]] std::optional<std::int64_t> output_layer_inputs(std::span<const TensorDesc> model);

/// Adds the embedding once more, as the head; nothing where the catalog has none.
void add_tied_head(const TiedHead& head, Catalog& catalog);

/// config.json that no longer says that head and embedding are one. Error: kJsonCorrupt.
[[nodiscard]] Result<std::string> untied_config(const std::string& config);

}  // namespace shardwright
