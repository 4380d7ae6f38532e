// SPDX-License-Identifier: Apache-2.0
#include "layout/extra_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "layout/layer_name.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

// The last norm of BERT's layers, and of those of T5 that read.
constexpr std::string_view kEncoderNorm = "encoder.final_layernorm";

// What Megatron has no module for.
bool is_only_of_hf(std::string_view name) { return name.starts_with("hf_extra."); }

// The module of a parameter. Norms that are fused into a linear, or only named as if they were,
// tell nothing: the linear's own weight does.
std::string_view module_of(std::string_view name) {
  // A core attention stores nothing but where it learns of what its softmax is to be off, and then
  // its state too (TEDotProductAttention.sharded_state_dict).
  constexpr std::string_view kOffset = ".softmax_offset";
  if (name.ends_with(kOffset)) return name.substr(0, name.size() - kOffset.size());
  for (const std::string_view parameter : {".weight", ".bias"}) {
    if (name.ends_with(parameter)) return name.substr(0, name.size() - parameter.size());
  }
  // A mixer's projection is stored in parts: `in_proj.weight.z`.
  constexpr std::string_view kProjection = ".in_proj.";
  const std::size_t projection = name.find(std::string(kProjection) + "weight.");
  if (projection == std::string_view::npos) return {};
  return name.substr(0, projection + kProjection.size() - 1);
}

// `/shard_{layer}.{expert}_{layers}.{experts}` with the axes that the stored tensor counts.
void append_shards(std::string_view module, const Dims& counts, std::set<std::string>& seen,
                   std::vector<std::string>& names) {
  const std::string key = std::string(module) + "._extra_state/shard_";
  if (counts.empty()) {
    if (seen.insert(key).second) names.push_back(key + "0_1");
    return;
  }
  if (!seen.insert(key).second) return;
  const std::int64_t outer = counts[0];
  const std::int64_t inner = counts.size() > 1 ? counts[1] : 1;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (std::int64_t j = 0; j < inner; ++j) {
      names.push_back(counts.size() > 1 ? fmt::format("{}{}.{}_{}.{}", key, i, j, outer, inner)
                                        : fmt::format("{}{}_{}", key, i, outer));
    }
  }
}

}  // namespace

bool is_norm_around_layers(std::string_view module) {
  if (is_only_of_hf(module)) return false;
  return module.ends_with("decoder.final_layernorm") || module == kEncoderNorm ||
         module.ends_with("vision_model.ln_pre") || module.ends_with("vision_model.ln_post");
}

bool is_linear_in_place(std::string_view tensor) {
  return tensor.ends_with(".self_attention.weight") || tensor.ends_with(".mlp.weight");
}

bool has_extra_state(std::string_view module, ModuleSpec spec) {
  if (is_in_foreign_module(module) || is_only_of_hf(module)) return false;
  // Megatron-Bridge leaves out those of adapters.
  if (module.find(".adapter.") != std::string_view::npos) return false;
  const std::string_view leaf = module.substr(module.rfind('.') + 1);
  if (leaf == "linear_1" || leaf == "linear_2") return false;  // of a projector that is HF's own
  if (leaf.starts_with("linear_") || leaf == "eh_proj") return true;
  if (leaf == "fc1_latent_proj" || leaf == "fc2_latent_proj") return true;  // around experts
  // Flux's: what its text has, and what scales and shifts its norms.
  if (leaf.starts_with("added_linear_")) return true;
  if (module.ends_with("adaln.linear") || module.ends_with("adaln_context.linear")) return true;
  if (module == "lm_head.output_layer") return true;  // T5's
  if (module.ends_with("multi_modal_projector.proj")) return true;
  if (is_norm_around_layers(module)) return true;
  if (spec == ModuleSpec::kLocal) return false;
  if (leaf.ends_with("layernorm") || module.ends_with(".indexer.k_norm")) return true;
  constexpr std::array<std::string_view, 8> kOthers = {
      "enorm",    "hnorm",    "final_norm", "in_proj",
      "out_proj", "out_norm", "patch_norm", "mm_soft_embed_norm"};
  if (std::find(kOthers.begin(), kOthers.end(), leaf) != kOthers.end()) return true;
  if (leaf == "core_attention") return true;
  // The norm in front of a layer's blocks; a mixer's own norm has none.
  const std::optional<LayerName> layer = split_layer_name(module);
  return layer && layer->index && layer->rest == "norm";
}

std::vector<std::string> extra_state_names(std::span<const TensorDesc> tensors, ModuleSpec spec) {
  std::set<std::string> seen;
  std::vector<std::string> names;
  for (const TensorDesc& tensor : tensors) {
    const std::string_view module = module_of(tensor.name);
    const bool is_in_place = is_linear_in_place(tensor.name) && !is_in_foreign_module(module);
    if (module.empty() || (!is_in_place && !has_extra_state(module, spec))) continue;
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    const bool stacked = layer && !layer->index && !tensor.shape.empty();
    const ShardRule rule = shard_rule(tensor.name, tensor.shape.size() - (stacked ? 1 : 0), false);
    Dims counts;
    if (stacked) counts.push_back(tensor.shape[0]);
    if (rule.expert_axis >= 0) {
      counts.push_back(tensor.shape[rule.expert_axis + (stacked ? 1 : 0)]);
    }
    append_shards(module, counts, seen, names);
    // Up to 0.16 a block of MTP layers asks for all states of its modules, that of an attention
    // too, which other layers keep to themselves (MultiTokenPredictionBlock.sharded_state_dict).
    constexpr std::string_view kBehindAttention = ".transformer_layer.self_attention.linear_proj";
    if (spec != ModuleSpec::kLocal && is_prediction_layer(module) &&
        module.ends_with(kBehindAttention)) {
      const std::string_view attention = module.substr(0, module.rfind('.'));
      append_shards(std::string(attention) + ".core_attention", counts, seen, names);
    }
    // Only GPTModel keeps the state of its output layer to itself.
    constexpr std::string_view kHybridNorm = "decoder.final_norm";
    if (module.ends_with(kHybridNorm)) {
      const std::string model(module.substr(0, module.size() - kHybridNorm.size()));
      append_shards(model + "output_layer", {}, seen, names);
    } else if (module == kEncoderNorm) {
      append_shards("output_layer", {}, seen, names);
    }
  }
  return names;
}

}  // namespace shardwright
