// SPDX-License-Identifier: Apache-2.0
#include "format/rank_modules.h"

#include <algorithm>

#include "model/arguments.h"

namespace shardwright {

LegacyModules rank_modules(std::span<const TensorDesc> model, const Arguments& arguments,
                           bool is_local, const VersionedNames& names) {
  LegacyModules modules;
  modules.grouped_experts = arguments.contains("moe_grouped_gemm")
                                ? !is_local && is_true(arguments, "moe_grouped_gemm")
                                : names.has_grouped_experts.value_or(false);
  const bool is_latent = std::ranges::any_of(model, [](const TensorDesc& desc) {
    return desc.name.find(".linear_kv_down_proj.") != std::string::npos;
  });
  modules.plain_norms = is_local && !is_latent;
  modules.scaled = ScaledLayers(model);
  // Runs tell their version by arguments that came with it.
  const auto is_since = [&](const char* argument) {
    return !is_of_training_run(arguments) || arguments.contains(argument);
  };
  const bool is_newer_hybrid =
      arguments.contains("hybrid_layer_pattern") && is_since("mtp_detach_heads");
  modules.plain_convolution = names.has_plain_convolution.value_or(is_newer_hybrid);
  modules.mtp_model_layer = names.has_mtp_model_layer.value_or(is_since("mtp_use_repeated_layer"));
  modules.fused_latent = !is_local && is_true(arguments, "mla_down_proj_fusion");
  return modules;
}

bool is_of_training_run(const Arguments& arguments) {
  return arguments.contains("micro_batch_size");
}

bool uses_local_modules(const Arguments& arguments) {
  const auto found = arguments.find("transformer_impl");
  return found != arguments.end() && found->second == ArgValue{std::string("local")};
}

bool uses_transformer_engine(const Arguments& arguments, const VersionedNames& names,
                             const Catalog& catalog) {
  const auto found = arguments.find("transformer_impl");
  if (found != arguments.end()) {
    const std::string* impl = std::get_if<std::string>(&found->second);
    return impl != nullptr && *impl == "transformer_engine";
  }
  if (names.has_fused_norms) return true;
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
