// SPDX-License-Identifier: Apache-2.0
#include "layout/module_spec.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "layout/plain_norms.h"

namespace shardwright {
namespace {

struct SpecSpelling {
  std::string_view transformer_engine;
  std::string_view local;
};

// Latent attention: nothing is mapped, so local modules show their own norms.
constexpr std::array kLatent = {
    SpecSpelling{".mlp.linear_fc1.layer_norm_", ".pre_mlp_layernorm."},
    SpecSpelling{".linear_q_up_proj.layer_norm_", ".q_layernorm."},
    SpecSpelling{".linear_kv_up_proj.layer_norm_", ".kv_layernorm."},
};
// The indexer of sparse attention takes the compressed query behind its norm: no spec fuses that.
constexpr std::array kSparse = {kLatent[0]};
// Otherwise the map gives local norms the fused names, in layers with experts too.
constexpr std::array kPlain = {
    SpecSpelling{".pre_mlp_layernorm.", ".mlp.linear_fc1.layer_norm_"},
};
// The layers of towers are dense, and nothing is mapped.
constexpr std::array kVision = {
    SpecSpelling{".self_attention.linear_qkv.layer_norm_", ".input_layernorm."},
    SpecSpelling{".mlp.linear_fc1.layer_norm_", ".pre_mlp_layernorm."},
};

void name_vision_norm(ModuleSpec spec, std::string& name) {
  const bool is_local = spec == ModuleSpec::kLocal;
  for (const SpecSpelling& spelling : kVision) {
    replace_first(name, is_local ? spelling.transformer_engine : spelling.local,
                  is_local ? spelling.local : spelling.transformer_engine);
  }
}

bool has_part(std::span<const TensorDesc> tensors, std::string_view part) {
  return std::any_of(tensors.begin(), tensors.end(), [part](const TensorDesc& tensor) {
    return tensor.name.find(part) != std::string::npos;
  });
}

std::span<const SpecSpelling> spellings_of(std::span<const TensorDesc> tensors) {
  if (has_part(tensors, ".core_attention.indexer.")) return kSparse;
  if (has_part(tensors, ".linear_kv_down_proj.")) return kLatent;
  return kPlain;
}

using Layers = std::set<std::string, std::less<>>;

// The layers that have something of that name: what comes before it.
Layers layers_with(std::string_view part, std::span<const TensorDesc> tensors) {
  Layers layers;
  for (const TensorDesc& tensor : tensors) {
    const std::size_t at = tensor.name.find(part);
    if (at != std::string::npos) layers.insert(tensor.name.substr(0, at));
  }
  return layers;
}

}  // namespace

std::vector<TensorDesc> names_in_spec(std::span<const TensorDesc> tensors, ModuleSpec spec) {
  std::vector<TensorDesc> named(tensors.begin(), tensors.end());
  if (spec == ModuleSpec::kKeep) return named;
  const std::span<const SpecSpelling> spellings = spellings_of(tensors);
  const bool is_latent = spellings.data() != kPlain.data();
  const Layers with_experts = layers_with(".mlp.router.", tensors);
  const ScaledLayers scaled(tensors);
  const VisionLayers vision(tensors);
  for (TensorDesc& tensor : named) {
    if (scaled.have(tensor.name)) continue;
    if (vision.have(tensor.name)) {
      name_vision_norm(spec, tensor.name);
      continue;
    }
    for (const SpecSpelling& spelling : spellings) {
      if (spec == ModuleSpec::kLocal) {
        replace_first(tensor.name, spelling.transformer_engine, spelling.local);
        continue;
      }
      const std::size_t at = tensor.name.find(spelling.local);
      if (at == std::string::npos) continue;
      // The norm in front of an MLP is fused only where the layer has no experts.
      const bool has_experts = with_experts.contains(std::string_view(tensor.name).substr(0, at));
      const bool is_mlp_norm =
          spelling.local != ".q_layernorm." && spelling.local != ".kv_layernorm.";
      if (is_mlp_norm && has_experts == is_latent) continue;
      replace_first(tensor.name, spelling.local, spelling.transformer_engine);
    }
  }
  return named;
}

}  // namespace shardwright
