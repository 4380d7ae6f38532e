// SPDX-License-Identifier: Apache-2.0
#include "layout/early_names.h"

#include <array>

#include "layout/layer_name.h"

namespace shardwright {
namespace {

struct EarlySpelling {
  std::string_view early;
  std::string_view core;
};

// Both spellings that norms and attention had.
constexpr std::array kInLayer = {
    EarlySpelling{"input_layernorm.", "self_attention.linear_qkv.layer_norm_"},
    EarlySpelling{"input_norm.", "self_attention.linear_qkv.layer_norm_"},
    EarlySpelling{"self_attention.query_key_value.", "self_attention.linear_qkv."},
    EarlySpelling{"attention.query_key_value.", "self_attention.linear_qkv."},
    EarlySpelling{"self_attention.dense.", "self_attention.linear_proj."},
    EarlySpelling{"attention.dense.", "self_attention.linear_proj."},
    EarlySpelling{"post_attention_layernorm.", "mlp.linear_fc1.layer_norm_"},
    EarlySpelling{"post_attention_norm.", "mlp.linear_fc1.layer_norm_"},
    EarlySpelling{"mlp.dense_h_to_4h.", "mlp.linear_fc1."},
    EarlySpelling{"mlp.dense_4h_to_h.", "mlp.linear_fc2."},
};
constexpr std::array kOutside = {
    EarlySpelling{"language_model.embedding.", "embedding."},
    EarlySpelling{"language_model.encoder.final_layernorm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.encoder.final_norm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.transformer.final_layernorm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.transformer.final_norm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.output_layer.", "output_layer."},
    // The last stage's copy of the embedding, for its output.
    EarlySpelling{"word_embeddings_for_head.", "embedding.word_embeddings."},
};

template <std::size_t N>
std::string replace_front(std::string_view name, const std::array<EarlySpelling, N>& spellings) {
  for (const EarlySpelling& spelling : spellings) {
    if (!name.starts_with(spelling.early)) continue;
    return std::string(spelling.core) + std::string(name.substr(spelling.early.size()));
  }
  return std::string(name);
}

}  // namespace

std::string core_name_of_early(std::string_view name) {
  const std::optional<LayerName> layer = split_layer_name(name);
  const bool is_layer = layer && layer->index &&
                        (layer->stack == "language_model.encoder.layers" ||
                         layer->stack == "language_model.transformer.layers");
  if (!is_layer) return replace_front(name, kOutside);
  return join_layer_name("decoder.layers", *layer->index, replace_front(layer->rest, kInLayer));
}

}  // namespace shardwright
