// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/mapping.h"

namespace shardwright {

/// The numbers of an invented model, and the HF tensors that transformers would save for it.
/// Written out by hand, so that mapping files are tested against something that they did not
/// produce.
struct SampleModel {
  std::int64_t layers = 2;
  std::int64_t hidden = 6;
  std::int64_t ffn = 5;
  std::int64_t heads = 3;
  std::int64_t groups = 1;
  std::int64_t head_dim = 2;
  std::int64_t vocab = 7;
  std::int64_t experts = 3;
  std::int64_t moe_ffn = 2;
  bool tied = false;

  /// LlamaForCausalLM; the biases of attention_bias and mlp_bias.
  [[nodiscard]] std::vector<TensorDesc> llama(bool attention_bias, bool mlp_bias) const;
  [[nodiscard]] std::vector<TensorDesc> qwen3_moe(bool packed, std::int64_t dense_layers) const;
  /// DeepseekV2ForCausalLM with the first layer dense; q_rank 0 has an uncompressed query.
  [[nodiscard]] std::vector<TensorDesc> deepseek_v2(std::int64_t q_rank) const;
  /// The sizes that all families share.
  [[nodiscard]] ModelSizes sizes() const;
  [[nodiscard]] ModelSizes deepseek_sizes(std::int64_t q_rank) const;

 private:
  void add_ends(std::vector<TensorDesc>& tensors) const;
  void add_attention(std::vector<TensorDesc>& tensors, const std::string& layer) const;
  void add_mlp(std::vector<TensorDesc>& tensors, const std::string& prefix,
               std::int64_t width) const;
};

}  // namespace shardwright
