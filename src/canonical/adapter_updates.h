// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/peft/adapter.h"

namespace shardwright {

/// A tensor of the base model to which a module of an adapter adds something; the adapter's tensors
/// are indexes into its catalog.
struct ModelUpdate {
  std::string tensor;
  std::uint32_t out = 0;
  std::optional<std::uint32_t> in;         ///< absent for a bias
  std::optional<std::uint32_t> magnitude;  ///< of DoRA
  int out_axis = 0;
  int in_axis = 1;
  float scale = 1.0F;
};

/// The output head of a model that has none of its own, because it is the embedding.
struct TiedHead {
  std::string embedding;
  std::string head;
  bool is_stored = false;  ///< the files have one nevertheless
};

/// What an adapter does to a model.
struct AdapterUpdates {
  std::vector<ModelUpdate> updates;  ///< after `saved`, where both speak of a tensor
  std::vector<SavedTensor> saved;    ///< tensors that become the adapter's
  /// Set where head and embedding are no longer the same.
  std::optional<TiedHead> untied;
};

/// The head that repeats the embedding, by the words of a config.json and the model's names;
/// nullopt where there is none. Error: kJsonCorrupt.
[[nodiscard]] Result<std::optional<TiedHead>> find_tied_head(std::string_view config_json,
                                                             std::span<const TensorDesc> model);

/// Finds the model's tensors for all that an adapter has. Errors: kUnmatchedSource for a module or
/// tensor that the model lacks; kShapeMismatch naming both tensors.
[[nodiscard]] Result<AdapterUpdates> match_adapter(const PeftAdapter& adapter,
                                                   std::span<const TensorDesc> model,
                                                   const std::optional<TiedHead>& tied);

/// config.json that no longer says that head and embedding are one. Error: kJsonCorrupt.
[[nodiscard]] Result<std::string> untied_config(const std::string& config);

}  // namespace shardwright
