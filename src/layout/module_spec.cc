// SPDX-License-Identifier: Apache-2.0
#include "layout/module_spec.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

namespace shardwright {
namespace {

struct Spelling {
  std::string_view transformer_engine;
  std::string_view local;
};

// Latent attention: nothing is mapped, so local modules show their own norms.
constexpr std::array kLatent = {
    Spelling{".mlp.linear_fc1.layer_norm_", ".pre_mlp_layernorm."},
    Spelling{".linear_q_up_proj.layer_norm_", ".q_layernorm."},
    Spelling{".linear_kv_up_proj.layer_norm_", ".kv_layernorm."},
};
// Otherwise the map gives local norms the fused names, in layers with experts too.
constexpr std::array kPlain = {
    Spelling{".pre_mlp_layernorm.", ".mlp.linear_fc1.layer_norm_"},
};

bool replace(std::string& name, std::string_view from, std::string_view to) {
  const std::size_t at = name.find(from);
  if (at == std::string::npos) return false;
  name.replace(at, from.size(), to);
  return true;
}

bool has_latent_attention(std::span<const TensorDesc> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorDesc& tensor) {
    return tensor.name.find(".linear_kv_down_proj.") != std::string::npos;
  });
}

// What comes before `.mlp.router.` in the names of layers with experts.
std::set<std::string, std::less<>> layers_with_experts(std::span<const TensorDesc> tensors) {
  std::set<std::string, std::less<>> layers;
  for (const TensorDesc& tensor : tensors) {
    const std::size_t at = tensor.name.find(".mlp.router.");
    if (at != std::string::npos) layers.insert(tensor.name.substr(0, at));
  }
  return layers;
}

}  // namespace

std::vector<TensorDesc> names_in_spec(std::span<const TensorDesc> tensors, ModuleSpec spec) {
  std::vector<TensorDesc> named(tensors.begin(), tensors.end());
  if (spec == ModuleSpec::kKeep) return named;
  const bool is_latent = has_latent_attention(tensors);
  const std::set<std::string, std::less<>> with_experts = layers_with_experts(tensors);
  const std::span<const Spelling> spellings =
      is_latent ? std::span<const Spelling>(kLatent) : std::span<const Spelling>(kPlain);
  for (TensorDesc& tensor : named) {
    for (const Spelling& spelling : spellings) {
      if (spec == ModuleSpec::kLocal) {
        replace(tensor.name, spelling.transformer_engine, spelling.local);
        continue;
      }
      const std::size_t at = tensor.name.find(spelling.local);
      if (at == std::string::npos) continue;
      // The norm in front of an MLP is fused only where the layer has no experts.
      const bool has_experts = with_experts.contains(std::string_view(tensor.name).substr(0, at));
      const bool is_mlp_norm =
          spelling.local != ".q_layernorm." && spelling.local != ".kv_layernorm.";
      if (is_mlp_norm && has_experts == is_latent) continue;
      replace(tensor.name, spelling.local, spelling.transformer_engine);
    }
  }
  return named;
}

}  // namespace shardwright
