// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/adapter_tensors.h"
#include "model/mapping_file.h"

namespace shardwright {

/// The size that says how many rows A has, where adapters are; of experts another one does, for
/// Megatron-Bridge may give them fewer (normalize_moe_lora).
inline constexpr std::string_view kAdapterRank = "lora_rank";
inline constexpr std::string_view kExpertAdapterRank = "lora_expert_rank";

/// The sizes that say of how many tensor ranks rows are in order, and of how many expert tensor
/// ranks those of experts; without them they are of one.
inline constexpr std::string_view kAdapterTensor = "lora_tensor_ranks";
inline constexpr std::string_view kAdapterExpertTensor = "lora_expert_tensor_ranks";

/// The size that is 1 where the base's files hold experts in one tensor, see
/// AdapterLayout::packs_experts.
inline constexpr std::string_view kAdapterPacked = "lora_packs_experts";

/// Whether a family's files may have experts one by one.
[[nodiscard]] bool numbers_experts(std::span<const Item> items);

/// Whether transformers' modules hold experts of this family as [inputs, outputs] and don't say so,
/// so that PEFT since 0.19 has A over the outputs: Llama 4's. GPT-OSS's, whose gate and up
/// alternate, say it (is_transposed). nullopt where no rule is of all experts' tensor.
[[nodiscard]] std::optional<bool> stores_turned(std::span<const Item> items);

/// The mapping of the low-rank adapters of a family's linears, made of the rules for their weights:
/// `linear_in` is A as it is, `linear_out` is B with the rows of the weight, and of experts a
/// leading axis counts them, on both sides where Hugging Face has all in one tensor. ms-swift's has
/// any tensor of a layer or of the whole model as one that is trained whole, too. The sizes
/// kAdapterRank and kExpertAdapterRank are the caller's to give. What has no adapter on one of the
/// sides (embeddings; CanonicalLoRA of experts that Hugging Face has in one tensor) has no rule.
/// Names: Megatron-Bridge's `peft` and mcore-bridge's. Error: kNotDivisible by the ranks.
[[nodiscard]] Result<Mapping> adapter_mapping(const Mapping& family, const AdapterLayout& layout);

}  // namespace shardwright
