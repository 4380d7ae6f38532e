// SPDX-License-Identifier: Apache-2.0
#include "layout/early_names.h"

#include <array>

#include "layout/layer_name.h"

namespace shardwright {
namespace {

struct Spelling {
  std::string_view early;
  std::string_view core;
};

// Both spellings that norms and attention had.
constexpr std::array kInLayer = {
    Spelling{"input_layernorm.", "self_attention.linear_qkv.layer_norm_"},
    Spelling{"input_norm.", "self_attention.linear_qkv.layer_norm_"},
    Spelling{"self_attention.query_key_value.", "self_attention.linear_qkv."},
    Spelling{"attention.query_key_value.", "self_attention.linear_qkv."},
    Spelling{"self_attention.dense.", "self_attention.linear_proj."},
    Spelling{"attention.dense.", "self_attention.linear_proj."},
    Spelling{"post_attention_layernorm.", "mlp.linear_fc1.layer_norm_"},
    Spelling{"post_attention_norm.", "mlp.linear_fc1.layer_norm_"},
    Spelling{"mlp.dense_h_to_4h.", "mlp.linear_fc1."},
    Spelling{"mlp.dense_4h_to_h.", "mlp.linear_fc2."},
};
constexpr std::array kOutside = {
    Spelling{"language_model.embedding.", "embedding."},
    Spelling{"language_model.encoder.final_layernorm.", "decoder.final_layernorm."},
    Spelling{"language_model.encoder.final_norm.", "decoder.final_layernorm."},
    Spelling{"language_model.transformer.final_layernorm.", "decoder.final_layernorm."},
    Spelling{"language_model.transformer.final_norm.", "decoder.final_layernorm."},
    Spelling{"language_model.output_layer.", "output_layer."},
    // The last stage's copy of the embedding, for its output.
    Spelling{"word_embeddings_for_head.", "embedding.word_embeddings."},
};

template <std::size_t N>
std::string replace_front(std::string_view name, const std::array<Spelling, N>& spellings) {
  for (const Spelling& spelling : spellings) {
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
