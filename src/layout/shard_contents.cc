// SPDX-License-Identifier: Apache-2.0
#include "layout/shard_contents.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "layout/layer_name.h"
#include "layout/wrapped_name.h"

namespace shardwright {
namespace {

// Towers have norms and layers of their own, which say nothing about the decoder's stages.
bool is_of_language_model(std::string_view name) {
  constexpr std::array<std::string_view, 8> kOthers = {
      "vision_model.", "vision_projection.", "visual.", "adapter.",
      "sound_model.",  "sound_projection.",  "mtp.",    "audio_model."};
  name = unwrapped(name);
  return std::ranges::none_of(kOthers, [&](std::string_view o) { return name.starts_with(o); });
}

std::optional<std::int64_t> number_in_front(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t kMost = 1'000'000;
  if (error != std::errc() || end == text.data() || number < 0 || number > kMost) {
    return std::nullopt;
  }
  return number;
}

// The number of an expert in `...local_experts.3.linear_fc1.weight` or `...linear_fc1.weight3`.
std::optional<std::int64_t> expert_number(std::string_view name) {
  for (const std::string_view before : {".local_experts.", "experts.linear_fc1.weight"}) {
    const std::size_t at = name.find(before);
    if (at != std::string_view::npos) return number_in_front(name.substr(at + before.size()));
  }
  return std::nullopt;
}

void add_tensor(const SampledTensor& tensor, std::set<std::int64_t>& layers, ShardContents& to) {
  const std::string_view name = tensor.name;
  if (name.find("hc_head") != std::string_view::npos && to.hyper_connection_head.empty()) {
    to.hyper_connection_head = name;
  }
  if (!is_of_language_model(name)) return;
  if (is_expert_tensor(name)) {
    to.has_experts = true;
    if (const auto number = expert_number(name)) {
      to.local_experts = std::max(to.local_experts.value_or(0), *number + 1);
    }
  }
  if (name.ends_with("mlp.router.weight") && !tensor.shape.empty()) {
    to.router_rows = tensor.shape[0];
  }
  if (name.ends_with("word_embeddings.weight")) {
    to.has_embedding = true;
    if (!tensor.shape.empty()) to.vocabulary_rows = tensor.shape[0];
  }
  if (name.ends_with("output_layer.weight") && tensor.shape.size() == 2) {
    to.head_rows = tensor.shape[0];
  }
  const auto layer = split_layer_name(name);
  if (layer && layer->index && layer->stack.ends_with("decoder.layers")) {
    layers.insert(*layer->index);
  }
  if (!layer && (name.find("final_layernorm.") != std::string_view::npos ||
                 name.find("final_norm.") != std::string_view::npos)) {
    to.has_final_norm = true;
  }
}

}  // namespace

std::vector<ShardContents> contents_of_chunks(const RankSample& sample) {
  std::vector<ShardContents> chunks;
  for (const auto& model : sample.models) {
    std::set<std::int64_t> layers;
    ShardContents& contents = chunks.emplace_back();
    for (const SampledTensor& tensor : model) add_tensor(tensor, layers, contents);
    contents.layers = static_cast<std::int64_t>(layers.size());
  }
  return chunks;
}

bool is_expert_tensor(std::string_view name) {
  return name.find(".experts.") != std::string_view::npos;
}

ShardContents contents_of(const RankSample& sample) {
  ShardContents contents;
  for (const auto& model : sample.models) {
    std::set<std::int64_t> layers;
    for (const SampledTensor& tensor : model) add_tensor(tensor, layers, contents);
    contents.layers += static_cast<std::int64_t>(layers.size());
  }
  return contents;
}

}  // namespace shardwright
