// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// Whether a file of this name makes a tokenizer: its words, or which class reads them.
[[nodiscard]] bool is_of_tokenizer(std::string_view name);

/// Whether a file of this name describes a Hugging Face model without being weights: its config,
/// its tokenizer, its code.
[[nodiscard]] bool describes_model(std::string_view name);

/// Whether a file of this name is usual in the folder of a Hugging Face model: what describes it,
/// its index and numbered shards, what a hub shows with it (README.md, licences).
[[nodiscard]] bool is_usual_in_model(std::string_view name);

/// Whether a file of this name is usual in the folder of an iteration of Megatron or DCP, besides
/// folders of ranks.
[[nodiscard]] bool is_usual_in_iteration(std::string_view name);

/// Whether a file of this name is usual in the folder of a rank of Megatron.
[[nodiscard]] bool is_usual_in_rank(std::string_view name);

}  // namespace shardwright
