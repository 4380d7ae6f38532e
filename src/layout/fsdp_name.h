// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

/// A tensor of a Megatron-FSDP checkpoint (`fsdp_dtensor`) as part of a canonical one.
struct FsdpName {
  enum class Role : std::uint8_t { kModel, kExpAvg, kExpAvgSq, kMomentum, kStep };
  enum class Half : std::uint8_t { kWhole, kGate, kValue };  ///< of a gated linear_fc1: _w, _v

  Role role = Role::kModel;
  std::string parameter;               ///< `decoder.layers.0.mlp.linear_fc1.weight`
  std::optional<std::int64_t> expert;  ///< its global number; then `parameter` counts experts
  Half half = Half::kWhole;
};

/// Splits `model.module.…` and `optimizer.state.module.module.module.….exp_avg`, or
/// `optimizer.1.state.…` of a chain of optimizers; nullopt for others.
[[nodiscard]] std::optional<FsdpName> split_fsdp_name(std::string_view name);

/// The way back. Experts get the names of Transformer Engine's grouped linears.
[[nodiscard]] std::string join_fsdp_name(const FsdpName& name);

/// `optimizer.param_to_group_meta.module.module.module.PARAMETER.KEY`, split. The parameter keeps
/// the name that the model gives it.
struct FsdpGroupEntry {
  std::string_view parameter;
  std::string_view key;
};
[[nodiscard]] std::optional<FsdpGroupEntry> split_fsdp_group_entry(std::string_view name);
/// Of an expert: the name before halves are split off. `parameter` as in FsdpName.
[[nodiscard]] std::string join_fsdp_group_entry(std::string_view parameter,
                                                std::optional<std::int64_t> expert,
                                                std::string_view key);

/// The name under which a parameter's settings are kept, without the setting:
/// `optimizer.param_to_group_meta.module.module.module.PARAMETER`. The halves of one share it.
[[nodiscard]] std::string fsdp_settings_of(const FsdpName& name);
/// The same of a setting that is stored under another name: of a chain of optimizers, or of experts
/// in a list.
[[nodiscard]] std::string fsdp_settings_of(const FsdpGroupEntry& entry);

/// Whether an entry of that name shows a Megatron-FSDP checkpoint.
[[nodiscard]] bool is_fsdp_model_name(std::string_view name);

}  // namespace shardwright
