// SPDX-License-Identifier: Apache-2.0
#include "layout/model_head.h"

#include <algorithm>

namespace shardwright {

bool is_in_head(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos &&
         std::ranges::find(kHeadModules, name.substr(0, dot)) != kHeadModules.end();
}

bool has_head_name(std::string_view name) {
  for (std::string_view rest = name; !rest.empty();) {
    if (is_in_head(rest)) return true;
    const std::size_t dot = rest.find('.');
    // In a layer a linear may be called so: `layers.2.mlp.router.classifier` of LongCat-Flash.
    const std::string_view word = rest.substr(0, dot);
    if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) return false;
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
  }
  return false;
}

OutputHeads::OutputHeads(std::span<const TensorDesc> tensors) {
  for (const TensorDesc& tensor : tensors) {
    const bool is_table =
        tensor.name.ends_with("embedding.word_embeddings.weight") && !tensor.shape.empty();
    if (is_table) token_rows_.insert(tensor.shape[0]);
  }
}

bool OutputHeads::has(const TensorDesc& tensor) const {
  const bool is_output =
      tensor.name.ends_with("output_layer.weight") || tensor.name.ends_with("output_layer.bias");
  if (!is_output || token_rows_.empty() || tensor.shape.empty()) return false;
  // What has other rows and nearly as many is the output layer of another vocabulary.
  return tensor.shape[0] <= *token_rows_.begin() / 2;
}

ShardRule OutputHeads::settled(ShardRule rule, const TensorDesc& tensor) const {
  if (has(tensor)) {
    rule.axis = -1;
    rule.vocabulary = false;
  }
  return rule;
}

bool OutputHeads::has_vocabulary_rows(const TensorDesc& tensor) const {
  const int axes = tensor.shape.size();
  return axes > 0 && settled(shard_rule(tensor.name, axes, false), tensor).vocabulary;
}

}  // namespace shardwright
