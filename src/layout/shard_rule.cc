// SPDX-License-Identifier: Apache-2.0
#include "layout/shard_rule.h"

#include <array>
#include <cctype>

#include "base/checked.h"
#include "layout/adapter_shards.h"
#include "layout/expert_names.h"
#include "layout/layer_name.h"

namespace shardwright {
namespace {

enum class Cut : std::uint8_t { kFirst, kLast };

struct Row {
  std::string_view suffix;  // of the name, beginning at a component
  Cut cut;
};

// Everything that is not listed is replicated: norms, routers, MLA down-projections, row-parallel
// biases. Sources: the sharded_state_dict methods of megatron/core/tensor_parallel/layers.py,
// transformer/*.py and ssm/*.py.
constexpr std::array kRows = {
    Row{"word_embeddings.weight", Cut::kFirst},
    Row{"output_layer.weight", Cut::kFirst},
    Row{"output_layer.bias", Cut::kFirst},
    Row{"rm_head.weight", Cut::kLast},  // NeMo-Aligner's
    Row{"linear_qkv.weight", Cut::kFirst},
    Row{"linear_qkv.bias", Cut::kFirst},
    Row{"linear_proj.weight", Cut::kLast},
    // A linear in the place of an attention or an MLP (replace_with_linear of Puzzle's models).
    Row{"self_attention.weight", Cut::kFirst},
    Row{"mlp.weight", Cut::kFirst},
    Row{"cross_attention.linear_q.weight", Cut::kFirst},
    Row{"cross_attention.linear_q.bias", Cut::kFirst},
    Row{"cross_attention.linear_kv.weight", Cut::kFirst},
    Row{"cross_attention.linear_kv.bias", Cut::kFirst},
    Row{"added_linear_qkv.weight", Cut::kFirst},
    Row{"added_linear_qkv.bias", Cut::kFirst},
    Row{"added_linear_proj.weight", Cut::kLast},
    // What scales and shifts Flux's norms.
    Row{"adaln.linear.weight", Cut::kFirst},
    Row{"adaln.linear.bias", Cut::kFirst},
    Row{"adaln_context.linear.weight", Cut::kFirst},
    Row{"adaln_context.linear.bias", Cut::kFirst},
    Row{"linear_q_proj.weight", Cut::kFirst},
    Row{"linear_q_up_proj.weight", Cut::kFirst},
    Row{"linear_kv_up_proj.weight", Cut::kFirst},
    Row{"linear_fc1.weight", Cut::kFirst},
    Row{"linear_fc1.bias", Cut::kFirst},
    Row{"linear_fc1.weight_w", Cut::kFirst},
    Row{"linear_fc1.weight_v", Cut::kFirst},
    Row{"linear_fc2.weight", Cut::kLast},
    Row{"eh_proj.weight", Cut::kFirst},
    Row{"core_attention.softmax_offset", Cut::kFirst},
    Row{"core_attention.attn_sink", Cut::kFirst},
    // Delta attention, and latent attention beside it, as Megatron-Bridge has both for Kimi K3.
    Row{"self_attention.q_proj.weight", Cut::kFirst},
    Row{"self_attention.k_proj.weight", Cut::kFirst},
    Row{"self_attention.v_proj.weight", Cut::kFirst},
    Row{"self_attention.q_conv1d.weight", Cut::kFirst},
    Row{"self_attention.k_conv1d.weight", Cut::kFirst},
    Row{"self_attention.v_conv1d.weight", Cut::kFirst},
    Row{"self_attention.f_proj.weight", Cut::kFirst},
    Row{"self_attention.f_b_proj.weight", Cut::kFirst},
    Row{"self_attention.gate_proj.weight", Cut::kFirst},
    Row{"self_attention.b_proj.weight", Cut::kFirst},
    Row{"self_attention.g_proj.weight", Cut::kFirst},
    Row{"self_attention.g_b_proj.weight", Cut::kFirst},
    Row{"self_attention.q_b_proj.weight", Cut::kFirst},
    Row{"self_attention.kv_b_proj.weight", Cut::kFirst},
    Row{"self_attention.o_proj.weight", Cut::kLast},
    Row{"A_log", Cut::kFirst},
    Row{"dt_bias", Cut::kFirst},
    Row{"mixer.D", Cut::kFirst},
    Row{"mixer.norm.weight", Cut::kFirst},
    Row{"mamba_mixer.D", Cut::kFirst},
    Row{"mamba_mixer.norm.weight", Cut::kFirst},
    Row{"out_proj.weight", Cut::kLast},
    Row{"multi_modal_projector.proj.weight", Cut::kFirst},
    Row{"vision_model.embedder.weight", Cut::kFirst},  // RADIO's
    Row{"vision_model.video_embedder.weight", Cut::kFirst},
    Row{"per_layer_embedding.weight", Cut::kFirst},
    Row{"per_layer_model_proj.weight", Cut::kFirst},
};

// The split projections of Mamba and gated delta nets carry the part behind the name:
// `mixer.in_proj.weight.z`.
constexpr std::array<std::string_view, 3> kSplitParts = {"in_proj.weight.", "conv1d.weight.",
                                                         "conv1d.bias."};

bool ends_with_component(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  return name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.';
}

// InternViT has one norm over the queries of all heads and one over the keys, and each rank the
// part for its heads: Megatron-LM's InternViTRMSNorm. Norms within a head are whole on every rank.
bool is_cut_norm(std::string_view name) {
  return name.find("vision_model.decoder.") != std::string_view::npos &&
         (ends_with_component(name, "q_layernorm.weight") ||
          ends_with_component(name, "k_layernorm.weight"));
}

bool is_split_part(std::string_view name) {
  const std::size_t last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return false;
  const std::string_view stem = name.substr(0, last_dot + 1);
  for (const std::string_view part : kSplitParts) {
    if (stem.ends_with(part)) return true;
  }
  return false;
}

}  // namespace

ShardRule shard_rule(std::string_view name, int axes, bool is_gated) {
  ShardRule rule;
  // The adapter of LLaVA-OneVision 1.5 and 2 is built of linears that are not parallel.
  if (is_in_foreign_module(name) || name.starts_with("adapter.")) return rule;
  if (const auto saved = name_of_saved(name)) return shard_rule(*saved, axes, is_gated);
  if (const auto adapter = adapter_tensor(name)) {
    if (axes < 1) return rule;
    constexpr int kAxesOfMatrix = 2;
    const bool is_expert = is_of_experts(*adapter);
    // What all experts have is whole on every rank.
    if (is_expert && axes <= kAxesOfMatrix) return rule;
    const ShardRule base = shard_rule(std::string(adapter->module) + ".weight",
                                      kAxesOfMatrix + (is_expert ? 1 : 0), false);
    return adapter_rule(*adapter, base, axes, is_gated);
  }
  int first = 0;
  if (is_of_routed_experts(name)) {
    rule.is_expert = true;
    const std::string_view rest = name_in_experts(name);
    // A number names one expert (singleton_local_shards); otherwise an axis counts them.
    if (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) == 0) {
      rule.expert_axis = 0;
      first = 1;
    }
  }
  for (const Row& row : kRows) {
    if (!ends_with_component(name, row.suffix)) continue;
    rule.axis = row.cut == Cut::kFirst ? first : axes - 1;
    rule.in_two =
        is_gated && (row.suffix == "linear_fc1.weight" || row.suffix == "linear_fc1.bias");
    rule.vocabulary =
        row.suffix.starts_with("word_embeddings") || row.suffix.starts_with("output_layer");
  }
  if (is_split_part(name) || is_cut_norm(name)) rule.axis = first;
  // Kimi Linear has the decays of its heads along the third of four axes.
  constexpr int kAxesOfDecays = 4;
  if (axes == kAxesOfDecays && ends_with_component(name, "self_attention.A_log")) rule.axis = 2;
  // A hostile file can give any name any number of axes.
  if (rule.expert_axis >= axes) rule.expert_axis = -1;
  if (rule.axis >= axes || rule.axis < first) rule.axis = -1;
  return rule;
}

std::int64_t padded_vocabulary(std::int64_t rows, std::int64_t divisible_by, std::int64_t tensor) {
  return round_up(rows, divisible_by * tensor);
}

}  // namespace shardwright
