// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "layout/shard_rule.h"
#include "shardwright/error.h"
#include "shardwright/parallel.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A tensor of a Megatron run's low-rank adapter, by its name.
struct AdapterTensor {
  enum class Part : std::uint8_t { kIn, kOut, kMagnitude };
  std::string_view module;  ///< the linear that it is added to
  Part part = Part::kIn;
  bool is_swift = false;  ///< with the names of ms-swift and mcore-bridge, else Megatron-Bridge's
  bool is_half = false;   ///< CanonicalLoRA's, of gate or up alone
};

/// nullopt for names of other tensors.
[[nodiscard]] std::optional<AdapterTensor> adapter_tensor(std::string_view name);

/// Whether the adapter is one of routed experts.
[[nodiscard]] bool is_of_experts(const AdapterTensor& adapter);

/// What ms-swift puts in front of the last word of a tensor that is trained whole beside adapters
/// (PEFT's ModulesToSaveWrapper); of `--modules_to_save all-embedding` in front of the last two.
inline constexpr std::string_view kSavedWhole = "modules_to_save.default.";

/// The name of the model's tensor that such a one replaces; nullopt for other names.
[[nodiscard]] std::optional<std::string> name_of_saved(std::string_view name);

/// Whether a tensor is one of those, and none of the model's own.
[[nodiscard]] bool is_of_adapter(std::string_view name);

/// How tensor ranks share an adapter's tensor out. `base`: the rule of its linear's weight;
/// `is_gated`: that is a gated linear_fc1. Sources: ParallelLinearAdapter of Megatron-Bridge, which
/// cuts both its linears whatever the base is; LoraParallelLinear of mcore-bridge, which keeps
/// whole what lies on the side that the base does not cut, and saves rows as each rank has them.
[[nodiscard]] ShardRule adapter_rule(const AdapterTensor& adapter, const ShardRule& base, int axes,
                                     bool is_gated);

/// Which first linears of MLPs are gated, by what lies beside them: the columns of the second
/// linear's weight, or of its adapter's A.
class GatedFirsts {
 public:
  GatedFirsts() = default;
  /// `tensors`: all of a model, or one rank's.
  explicit GatedFirsts(std::span<const TensorDesc> tensors);

  /// Of a weight, a bias, or the B of an adapter that gate and up share; false for other tensors
  /// and where nothing tells.
  [[nodiscard]] bool has(const TensorDesc& tensor) const;
  /// The rows of such a B can't be shared out, because nothing beside it tells what they are.
  [[nodiscard]] bool is_unknown(const TensorDesc& tensor) const;

 private:
  [[nodiscard]] std::optional<std::int64_t> columns_beside(std::string_view name) const;

  std::unordered_map<std::string, std::int64_t> columns_;  // by what stands before linear_fc2
};

/// Error: kUnsupportedFormat for an adapter of routed experts, which no trainer has in a legacy
/// checkpoint, and where it is not known what each rank has of an adapter's tensor: of a mixer's
/// fused projection under Megatron-Bridge's names, and of an MLP's first linear that nothing beside
/// it says to be gated or not.
[[nodiscard]] Status check_adapter_shares(const TensorDesc& tensor, const GatedFirsts& gated,
                                          const ParallelConfig& config);

}  // namespace shardwright
