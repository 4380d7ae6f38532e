// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// What stands in front of a module's name in the files of PEFT.
inline constexpr std::string_view kPeftPrefix = "base_model.model.";

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

}  // namespace shardwright
