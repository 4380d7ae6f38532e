// SPDX-License-Identifier: Apache-2.0
#include "model/sample_model.h"

#include <fmt/format.h>

namespace shardwright {
namespace {

constexpr std::int64_t kKvRank = 3;
constexpr std::int64_t kNope = 2;
constexpr std::int64_t kRope = 1;
constexpr std::int64_t kValue = 3;

void add(std::vector<TensorDesc>& tensors, const std::string& name, const Dims& shape) {
  tensors.push_back(TensorDesc{name, DType::kBF16, shape});
}

std::string layer_prefix(std::int64_t layer) { return fmt::format("model.layers.{}.", layer); }

}  // namespace

void SampleModel::add_ends(std::vector<TensorDesc>& tensors) const {
  add(tensors, "model.embed_tokens.weight", {vocab, hidden});
  add(tensors, "model.norm.weight", {hidden});
  if (!tied) add(tensors, "lm_head.weight", {vocab, hidden});
}

void SampleModel::add_attention(std::vector<TensorDesc>& tensors, const std::string& layer) const {
  add(tensors, layer + "input_layernorm.weight", {hidden});
  add(tensors, layer + "self_attn.q_proj.weight", {heads * head_dim, hidden});
  add(tensors, layer + "self_attn.k_proj.weight", {groups * head_dim, hidden});
  add(tensors, layer + "self_attn.v_proj.weight", {groups * head_dim, hidden});
  add(tensors, layer + "self_attn.o_proj.weight", {hidden, heads * head_dim});
  add(tensors, layer + "post_attention_layernorm.weight", {hidden});
}

void SampleModel::add_mlp(std::vector<TensorDesc>& tensors, const std::string& prefix,
                          std::int64_t width) const {
  add(tensors, prefix + "gate_proj.weight", {width, hidden});
  add(tensors, prefix + "up_proj.weight", {width, hidden});
  add(tensors, prefix + "down_proj.weight", {hidden, width});
}

std::vector<TensorDesc> SampleModel::llama(bool attention_bias, bool mlp_bias) const {
  std::vector<TensorDesc> tensors;
  add_ends(tensors);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = layer_prefix(i);
    add_attention(tensors, layer);
    add_mlp(tensors, layer + "mlp.", ffn);
    if (attention_bias) {
      add(tensors, layer + "self_attn.q_proj.bias", {heads * head_dim});
      add(tensors, layer + "self_attn.k_proj.bias", {groups * head_dim});
      add(tensors, layer + "self_attn.v_proj.bias", {groups * head_dim});
      add(tensors, layer + "self_attn.o_proj.bias", {hidden});
    }
    if (mlp_bias) {
      add(tensors, layer + "mlp.gate_proj.bias", {ffn});
      add(tensors, layer + "mlp.up_proj.bias", {ffn});
      add(tensors, layer + "mlp.down_proj.bias", {hidden});
    }
  }
  return tensors;
}

std::vector<TensorDesc> SampleModel::qwen3_moe(bool packed, std::int64_t dense_layers) const {
  std::vector<TensorDesc> tensors;
  add_ends(tensors);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = layer_prefix(i);
    add_attention(tensors, layer);
    add(tensors, layer + "self_attn.q_norm.weight", {head_dim});
    add(tensors, layer + "self_attn.k_norm.weight", {head_dim});
    if (i < dense_layers) {
      add_mlp(tensors, layer + "mlp.", ffn);
      continue;
    }
    add(tensors, layer + "mlp.gate.weight", {experts, hidden});
    if (packed) {
      add(tensors, layer + "mlp.experts.gate_up_proj", {experts, 2 * moe_ffn, hidden});
      add(tensors, layer + "mlp.experts.down_proj", {experts, hidden, moe_ffn});
    }
    for (std::int64_t e = 0; !packed && e < experts; ++e) {
      add_mlp(tensors, fmt::format("{}mlp.experts.{}.", layer, e), moe_ffn);
    }
  }
  return tensors;
}

std::vector<TensorDesc> SampleModel::deepseek_v2(std::int64_t q_rank) const {
  std::vector<TensorDesc> tensors;
  add_ends(tensors);
  const std::int64_t query = heads * (kNope + kRope);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string layer = layer_prefix(i);
    const std::string attention = layer + "self_attn.";
    add(tensors, layer + "input_layernorm.weight", {hidden});
    add(tensors, layer + "post_attention_layernorm.weight", {hidden});
    if (q_rank == 0) {
      add(tensors, attention + "q_proj.weight", {query, hidden});
    } else {
      add(tensors, attention + "q_a_proj.weight", {q_rank, hidden});
      add(tensors, attention + "q_a_layernorm.weight", {q_rank});
      add(tensors, attention + "q_b_proj.weight", {query, q_rank});
    }
    add(tensors, attention + "kv_a_proj_with_mqa.weight", {kKvRank + kRope, hidden});
    add(tensors, attention + "kv_a_layernorm.weight", {kKvRank});
    add(tensors, attention + "kv_b_proj.weight", {heads * (kNope + kValue), kKvRank});
    add(tensors, attention + "o_proj.weight", {hidden, heads * kValue});
    if (i == 0) {
      add_mlp(tensors, layer + "mlp.", ffn);
      continue;
    }
    add(tensors, layer + "mlp.gate.weight", {experts, hidden});
    for (std::int64_t e = 0; e < experts; ++e) {
      add_mlp(tensors, fmt::format("{}mlp.experts.{}.", layer, e), moe_ffn);
    }
    add_mlp(tensors, layer + "mlp.shared_experts.", 2 * moe_ffn);
  }
  return tensors;
}

ModelSizes SampleModel::sizes() const {
  return ModelSizes{{"layers", layers},     {"hidden", hidden},   {"ffn", ffn},
                    {"heads", heads},       {"groups", groups},   {"head_dim", head_dim},
                    {"vocab", vocab},       {"experts", experts}, {"moe_ffn", moe_ffn},
                    {"tied", tied ? 1 : 0}, {"mtp_layers", 0}};
}

ModelSizes SampleModel::deepseek_sizes(std::int64_t q_rank) const {
  ModelSizes all = sizes();
  all["kv_rank"] = kKvRank;
  all["nope_dim"] = kNope;
  all["rope_dim"] = kRope;
  all["v_dim"] = kValue;
  all["shared_ffn"] = 2 * moe_ffn;
  if (q_rank > 0) all["q_rank"] = q_rank;
  return all;
}

}  // namespace shardwright
