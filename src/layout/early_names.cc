// SPDX-License-Identifier: Apache-2.0
#include "layout/early_names.h"

#include <algorithm>
#include <array>
#include <optional>

#include "layout/layer_name.h"

namespace shardwright {
namespace {

struct EarlySpelling {
  std::string_view early;
  std::string_view core;
};

// All spellings that norms and attention had; those of GPT-NeoX's MLP and RMSNorm too.
constexpr std::array kInLayer = {
    EarlySpelling{"input_layernorm.scale", "self_attention.linear_qkv.layer_norm_weight"},
    EarlySpelling{"post_attention_layernorm.scale", "mlp.linear_fc1.layer_norm_weight"},
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
    EarlySpelling{"mlp.linear1.", "mlp.linear_fc1."},
    EarlySpelling{"mlp.linear2.", "mlp.linear_fc2."},
};
constexpr std::array kOutside = {
    // BLOOM's, within the module of the embedding that it follows.
    EarlySpelling{"language_model.embedding.word_embeddings.norm.",
                  "embedding.word_embeddings_layernorm."},
    EarlySpelling{"language_model.embedding.", "embedding."},
    EarlySpelling{"language_model.encoder.final_layernorm.scale", "decoder.final_layernorm.weight"},
    EarlySpelling{"language_model.encoder.final_layernorm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.encoder.final_norm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.transformer.final_layernorm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.transformer.final_norm.", "decoder.final_layernorm."},
    EarlySpelling{"language_model.output_layer.", "output_layer."},
    // The last stage's copy of the embedding, for its output.
    EarlySpelling{"word_embeddings_for_head.", "embedding.word_embeddings."},
};

// What an embedding has.
constexpr std::string_view kEarlyEmbedding = "language_model.embedding.";
constexpr std::array<std::string_view, 3> kEarlyEmbeddings = {
    "word_embeddings.", "position_embeddings.", "tokentype_embeddings."};

template <std::size_t N>
bool has_front(std::string_view name, const std::array<EarlySpelling, N>& spellings) {
  return std::ranges::any_of(
      spellings, [&](const EarlySpelling& spelling) { return name.starts_with(spelling.early); });
}

// The layer's, of a stack that such models have.
std::optional<LayerName> early_layer_of(std::string_view name) {
  const std::optional<LayerName> layer = split_layer_name(name);
  const bool is_it = layer && layer->index &&
                     (layer->stack == "language_model.encoder.layers" ||
                      layer->stack == "language_model.transformer.layers");
  return is_it ? layer : std::nullopt;
}

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
  const std::optional<LayerName> layer = early_layer_of(name);
  if (!layer) return replace_front(name, kOutside);
  return join_layer_name("decoder.layers", *layer->index, replace_front(layer->rest, kInLayer));
}

bool is_early_name(std::string_view name) {
  if (const auto layer = early_layer_of(name)) return has_front(layer->rest, kInLayer);
  if (!name.starts_with(kEarlyEmbedding)) return has_front(name, kOutside);
  return std::ranges::any_of(kEarlyEmbeddings, [&](std::string_view embedding) {
    return name.substr(kEarlyEmbedding.size()).starts_with(embedding);
  });
}

}  // namespace shardwright
