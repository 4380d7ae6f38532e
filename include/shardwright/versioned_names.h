// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace shardwright {

/// What versions of Megatron-Core call modules of a rank differently, as files of ranks, or of
/// Megatron-FSDP, show it; nullopt where they have no such module.
struct VersionedNames {
  std::optional<bool> has_mtp_model_layer;  ///< since 0.17, `transformer_layer` before
  /// `conv1d_weight` since 0.19, `conv1d.weight` before.
  std::optional<bool> has_plain_convolution;
  /// Norms are parameters of the linears that follow them, as Transformer Engine's modules have it.
  bool has_fused_norms = false;
  /// A rank's experts are one module (`experts.linear_fc1.weight3`), else a list of modules.
  std::optional<bool> has_grouped_experts;
  /// Megatron-FSDP: what modules have as one is stored by its parts. Of mixers, and of fused latent
  /// attention.
  bool has_mixers_apart = false;
  bool has_latents_apart = false;
};

}  // namespace shardwright
