// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The part of a multimodal model that a tensor belongs to, by its name's first word
/// (`vision_model`); empty for the language model's own. Borrows the name.
[[nodiscard]] std::string_view tower_of(std::string_view name);

/// How many tensor ranks share out a tower's tensors, for towers whose number is known.
using TowerSizes = std::map<std::string, std::int64_t, std::less<>>;

/// The number for the tower that `name` belongs to, `otherwise` for the language model's tensors
/// and for towers that are not among `sizes`.
[[nodiscard]] std::int64_t tensor_size_of(std::string_view name, const TowerSizes& sizes,
                                          std::int64_t otherwise);

/// The number with which a run of `config` shares out the tensor, which is no expert's.
[[nodiscard]] std::int64_t tensor_size_of(std::string_view name, const ParallelConfig& config);

/// The width of a tower's layers: what their linears read. nullopt for a tower without any.
/// `tensors` are a state dict.
[[nodiscard]] std::optional<std::int64_t> tower_width(std::span<const TensorDesc> tensors,
                                                      std::string_view tower);

/// How many ranks share out the rows of a tower's patch embedding, which some modules cut and
/// others repeat (PATCH_EMBED_TYPE of LLaVA-OneVision 2): all of its rows are the tower's width. 1
/// for other tensors, and where nothing tells. `tensors` are its state dict.
[[nodiscard]] std::int64_t patch_cuts(const TensorDesc& tensor,
                                      std::span<const TensorDesc> tensors);

}  // namespace shardwright
