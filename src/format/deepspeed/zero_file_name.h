// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwright {

/// What a DeepSpeed file's name says: `bf16_zero_pp_rank_3_mp_rank_00_optim_states.pt`,
/// `mp_rank_00_model_states.pt`.
struct ZeroFileName {
  enum class Holds : std::uint8_t { kModel, kOptimizer };
  Holds holds = Holds::kModel;
  /// The data-parallel rank, which the name calls pp_rank; nullopt where one file has all of it.
  std::optional<std::int64_t> data_rank;
  std::int64_t model_rank = 0;
};

/// nullopt for other files, those of experts and of layers among them.
[[nodiscard]] std::optional<ZeroFileName> parse_zero_file(std::string_view name);

/// `layer_03-model_01-model_states.pt` of Megatron-DeepSpeed and GPT-NeoX: one layer's tensors, as
/// one tensor-parallel rank has them.
struct LayerFileName {
  std::int64_t layer = 0;
  std::int64_t tensor_rank = 0;
};
[[nodiscard]] std::optional<LayerFileName> parse_layer_file(std::string_view name);

/// The layer of `layer_03-model_states.pt`, which a PipelineModule without a model axis writes.
[[nodiscard]] std::optional<std::int64_t> parse_uncut_layer_file(std::string_view name);

}  // namespace shardwright
