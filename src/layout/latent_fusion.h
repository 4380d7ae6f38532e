// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "shardwright/error.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// Latent attention whose two down-projections are one column-parallel linear of a rank,
/// `linear_qkv_down_proj`, with the layer's first norm in it (`--mla-down-proj-fusion`, 0.17 and
/// later). torch_dist has the weights apart and the norm as `input_layernorm`, as without fusion.
/// Source: FusedMLASelfAttention in megatron/core/transformer/multi_latent_attention.py and the
/// keys map of its layer in models/gpt/gpt_layer_specs.py.
class LatentFusion {
 public:
  /// Where a tensor of torch_dist is on a rank.
  struct Place {
    std::string name;     ///< on the rank
    int order = -1;       ///< of the rows within it; -1 for a tensor that is whole
    bool is_cut = false;  ///< along its first axis, by tensor parallelism
  };

  /// `canonical` are the model's tensors: only layers with a down-projection for queries fuse it.
  explicit LatentFusion(std::span<const TensorDesc> canonical);

  /// Nothing for a tensor that fusion leaves as it is.
  [[nodiscard]] std::optional<Place> place_of(std::string_view canonical) const;

 private:
  std::unordered_set<std::string> layers_;
};

/// The rows of one rank's fused weight: first those of queries, then of keys and values.
struct LatentRows {
  std::string query;      ///< name of the down-projection of queries in torch_dist
  std::string key_value;  ///< of that of keys and values
  std::int64_t queries = 0;
  std::int64_t keys_values = 0;
};

/// What the fused weight `name` with `rows` rows is made of, on a rank of `tensor_parallel`.
/// `up_columns` is the last extent of `linear_q_up_proj.weight` beside it, which is not cut; 0 if
/// there is none. Error: kShapeMismatch.
[[nodiscard]] Result<LatentRows> latent_rows(std::string_view name, std::int64_t rows,
                                             std::int64_t up_columns, std::int64_t tensor_parallel);

/// The names in torch_dist of the two weights that the fused weight `name` is made of, first that
/// of queries. REQUIRES: is_fused_latent(name).
[[nodiscard]] std::array<std::string, 2> latent_weights(std::string_view name);

/// Whether the name, of a rank or of torch_dist, is that of a fused weight.
[[nodiscard]] bool is_fused_latent(std::string_view name);

/// The name of the norm inside a fused linear, as torch_dist has it; other names as they are.
[[nodiscard]] std::string unfused_latent_norm(std::string_view name);

}  // namespace shardwright
