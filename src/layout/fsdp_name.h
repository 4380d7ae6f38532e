// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layout/gate_half.h"

namespace shardwright {

/// A tensor of a Megatron-FSDP checkpoint (`fsdp_dtensor`) as part of a canonical one.
struct FsdpName {
  enum class Role : std::uint8_t {
    kModel,
    kExpAvg,
    kExpAvgSq,
    kMomentum,
    kStep,
    kMaster,  ///< apart from the model's weight: Megatron-FSDP itself has none such
  };

  Role role = Role::kModel;
  std::string parameter;               ///< `decoder.layers.0.mlp.linear_fc1.weight`
  std::optional<std::int64_t> expert;  ///< its global number; then `parameter` counts experts
  GateHalf half = GateHalf::kWhole;
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

/// Where a parameter's settings are stored, without the setting:
/// `optimizer.param_to_group_meta.module.module.module.PARAMETER`.
[[nodiscard]] std::string fsdp_settings_name(std::string_view parameter,
                                             std::optional<std::int64_t> expert);

/// Where a parameter's settings are looked for: fsdp_settings_name() by the names of torch_dist,
/// because settings and states may have those of different versions. What is stored in parts (the
/// halves of a gate, a mixer's projections) has the settings of the whole; a fused down-projection
/// of latent attention has those of both of its weights.
[[nodiscard]] std::vector<std::string> fsdp_settings_of(const FsdpName& name);
[[nodiscard]] std::vector<std::string> fsdp_settings_of(const FsdpGroupEntry& entry);

/// A parameter as the modules call it, apart from an expert's number.
[[nodiscard]] FsdpName split_fsdp_parameter(std::string_view parameter);

/// Whether an entry of that name shows a Megatron-FSDP checkpoint.
[[nodiscard]] bool is_fsdp_model_name(std::string_view name);

/// Whether an entry of that name shows what Megatron saves as torch_dcp, and a second version of
/// Megatron-FSDP by itself: `model.` and a module's name, `model.decoder.layers.0.mlp.…`, which a
/// multimodal model has inside its parts. Hugging Face's decoders are called so too and have other
/// modules.
[[nodiscard]] bool is_torch_dcp_model_name(std::string_view name);

/// `model.module.PARAMETER` of what torch_dcp calls `model.PARAMETER`; nullopt for others.
[[nodiscard]] std::optional<std::string> fsdp_model_name(std::string_view torch_dcp_name);

}  // namespace shardwright
