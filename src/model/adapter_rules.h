// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "model/mapping_file.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What stands in front of a module's name in the files of PEFT.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

/// The size that says how many rows A has, where adapters are; of experts another one does, for
/// Megatron-Bridge may give them fewer (normalize_moe_lora).
inline constexpr std::string_view kAdapterRank = "lora_rank";
inline constexpr std::string_view kExpertAdapterRank = "lora_expert_rank";

/// Whether a tensor is part of a low-rank adapter, by its name in Megatron or in the files of PEFT.
[[nodiscard]] bool is_adapter_name(std::string_view name);

/// The ranks of adapters.
struct AdapterRanks {
  std::optional<std::int64_t> dense;    ///< of all modules but routed experts
  std::optional<std::int64_t> experts;  ///< of routed experts

  /// That of a run's settings: experts may have less of it.
  [[nodiscard]] std::int64_t whole() const { return dense ? *dense : experts.value_or(0); }
};

/// The ranks of the adapters among these tensors; nullopt where there are none. Errors:
/// kUnmatchedTarget naming a half without its other; kShapeMismatch naming two that have different
/// ranks, which Megatron has no setting for.
[[nodiscard]] Result<std::optional<AdapterRanks>> adapter_ranks(
    std::span<const TensorDesc> tensors);

/// The sizes that say of how many tensor ranks rows are in order, and of how many expert tensor
/// ranks those of experts; without them they are of one.
inline constexpr std::string_view kAdapterTensor = "lora_tensor_ranks";
inline constexpr std::string_view kAdapterExpertTensor = "lora_expert_tensor_ranks";

/// The size that is 1 where the base's files hold experts in one tensor, see
/// AdapterLayout::packs_experts.
inline constexpr std::string_view kAdapterPacked = "lora_packs_experts";

/// What PEFT calls the parameters of all experts of a layer, in the order in which models of
/// transformers have them.
inline constexpr std::array<std::string_view, 2> kExpertParameters = {".experts.gate_up_proj",
                                                                      ".experts.down_proj"};

/// Whether a family's files may have experts one by one.
[[nodiscard]] bool numbers_experts(std::span<const Item> items);

/// Whether transformers' modules hold experts of this family as [inputs, outputs] and don't say so,
/// so that PEFT since 0.19 has A over the outputs: Llama 4's. GPT-OSS's, whose gate and up
/// alternate, say it (is_transposed). nullopt where no rule is of all experts' tensor.
[[nodiscard]] std::optional<bool> stores_turned(std::span<const Item> items);

/// The module that an adapter's tensor of a Megatron run belongs to, as its settings list it:
/// `linear_qkv`, and of CanonicalLoRA `linear_q`; nullopt for other names. `behind_parent`: with
/// the name of what it is in, `experts.linear_fc1`.
[[nodiscard]] std::optional<std::string> adapted_module(std::string_view name, bool behind_parent);

/// How a Megatron run has the adapter of a module that several of Hugging Face's make.
enum class AdapterForm : std::uint8_t {
  kFused,      ///< one, whose A is each one's: Megatron-Bridge's LoRA
  kCanonical,  ///< one for each: Megatron-Bridge's CanonicalLoRA
  kSwift,      ///< one, with the names of ms-swift and mcore-bridge
};

/// How a Megatron run has its adapters.
struct AdapterLayout {
  AdapterForm form = AdapterForm::kFused;
  std::int64_t tensor = 1;         ///< of how many ranks rows are, see is_in_rank_order()
  std::int64_t expert_tensor = 1;  ///< likewise of experts
  /// Where a family's files have experts one by one or in one tensor, they are to be in one.
  bool packs_experts = false;
  /// Tensors that all experts have in common, by what stands behind `.experts.experts.`: Bridge's
  /// experts_shared_outer_loras, and what it saved of share_expert_adapters at first.
  std::set<std::string, std::less<>> of_all_experts;
};

/// As the names and axes of these tensors show, kFused where nothing does; of one rank.
[[nodiscard]] AdapterLayout adapter_layout(std::span<const TensorDesc> canonical);

/// Whether the order of a tensor's rows depends on the tensor parallel size that it was saved at,
/// where its module is a gated linear. Three are saved as if what each rank has of gate and up were
/// one run of rows: ms-swift's B and DoRA's magnitudes have [gate, up] rank by rank,
/// CanonicalLoRA's B of gate, like that of up, the first half of each rank's rows before all second
/// halves. Every such name is one of adapter_tensor(). Sources: LoraParallelLinear of mcore-bridge,
/// ParallelLinearAdapter of Megatron-Bridge.
[[nodiscard]] bool is_in_rank_order(std::string_view name);

/// The mapping of the low-rank adapters of a family's linears, made of the rules for their weights:
/// `linear_in` is A as it is, `linear_out` is B with the rows of the weight, and of experts a
/// leading axis counts them, on both sides where Hugging Face has all in one tensor. ms-swift's has
/// any tensor of a layer or of the whole model as one that is trained whole, too. The sizes
/// kAdapterRank and kExpertAdapterRank are the caller's to give. What has no adapter on one of the
/// sides (embeddings; CanonicalLoRA of experts that Hugging Face has in one tensor) has no rule.
/// Names: Megatron-Bridge's `peft` and mcore-bridge's. Error: kNotDivisible by the ranks.
[[nodiscard]] Result<Mapping> adapter_mapping(const Mapping& family, const AdapterLayout& layout);

}  // namespace shardwright
