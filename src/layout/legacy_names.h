// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "layout/plain_norms.h"
#include "shardwright/versioned_names.h"

namespace shardwright {

/// How a rank's modules are put together, as far as the names in its state dict show it.
struct LegacyModules {
  /// Megatron-Core's own modules keep norms apart that torch_dist names as if they were fused.
  bool plain_norms = false;
  /// The experts of a rank are one module (`experts.linear_fc1.weight3`), not a list of modules
  /// (`experts.local_experts.3.linear_fc1.weight`).
  bool grouped_experts = true;
  /// The layer inside an MTP layer is called `mtp_model_layer` (0.17 and later), not
  /// `transformer_layer`.
  bool mtp_model_layer = true;
  /// A Mamba mixer's convolution is two parameters of its own (`conv1d_weight`, 0.19 and later),
  /// not a module (`conv1d.weight`).
  bool plain_convolution = false;
  /// The down-projections of latent attention are one linear: see LatentFusion.
  bool fused_latent = false;
  /// Those whose norms have one name, among the canonical tensors; `plain_norms` is about others.
  ScaledLayers scaled = {};
};

/// The model's numbers of the layers that are 0 in a stage. A model with two stacks (T5) has one of
/// each; of another only its own stack's counts.
struct FirstLayers {
  std::int64_t decoder = 0;
  std::int64_t encoder = 0;
};

/// Tells what a name of a legacy file shows of its version; what another file showed stays.
void note_version(std::string_view legacy, VersionedNames& names);

/// A name of torch_dist, for a name of a legacy file.
struct CanonicalName {
  std::string name;
  /// The rank's own number of the expert, for tensors of one expert; `name` has an axis for it.
  std::optional<std::int64_t> expert;
};

/// `decoder.layers.0.mlp.experts.linear_fc1.weight2` on a stage whose first layer is 4 is expert 2
/// (of the rank) of `decoder.layers.4.mlp.experts.experts.linear_fc1.weight`. Names outside the
/// main stacks keep their numbers. Source: sharded_state_dict and its keys maps in
/// megatron/core/transformer/{transformer_block,moe/experts,multi_token_prediction}.py.
[[nodiscard]] CanonicalName canonical_from_legacy(std::string_view legacy, FirstLayers first,
                                                  bool plain_norms);

/// The reverse. `expert` is the rank's own number of it, for tensors with an axis of experts.
[[nodiscard]] std::string legacy_from_canonical(std::string_view canonical, FirstLayers first,
                                                std::optional<std::int64_t> expert,
                                                const LegacyModules& modules);

}  // namespace shardwright
