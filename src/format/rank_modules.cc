// SPDX-License-Identifier: Apache-2.0
#include "format/rank_modules.h"

#include <algorithm>

namespace shardwright {

LegacyModules rank_modules(std::span<const TensorDesc> model, const Arguments& arguments,
                           bool is_local) {
  LegacyModules modules;
  const auto grouped = arguments.find("moe_grouped_gemm");
  modules.grouped_experts =
      !is_local && grouped != arguments.end() && grouped->second == ArgValue{true};
  const bool is_latent = std::ranges::any_of(model, [](const TensorDesc& desc) {
    return desc.name.find(".linear_kv_down_proj.") != std::string::npos;
  });
  modules.plain_norms = is_local && !is_latent;
  // An argument that came with the versions whose mixers keep no convolution module.
  modules.plain_convolution = arguments.contains("hybrid_layer_pattern");
  const auto fused = arguments.find("mla_down_proj_fusion");
  modules.fused_latent = !is_local && fused != arguments.end() && fused->second == ArgValue{true};
  return modules;
}

bool uses_transformer_engine(const Arguments& arguments, const Catalog& catalog) {
  const auto found = arguments.find("transformer_impl");
  if (found != arguments.end()) {
    const std::string* impl = std::get_if<std::string>(&found->second);
    return impl != nullptr && *impl == "transformer_engine";
  }
  // A mixer whose input projection has a norm of its own is made of fused modules.
  const bool has_fused_mixer = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.ends_with(".in_proj.layer_norm_weight");
  });
  if (has_fused_mixer) return true;
  return std::ranges::any_of(catalog.objects, [](const StoredObject& object) {
    return object.name.find("final_layernorm._extra_state/") != std::string::npos;
  });
}

}  // namespace shardwright
