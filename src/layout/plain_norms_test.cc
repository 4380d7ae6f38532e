// SPDX-License-Identifier: Apache-2.0
#include "layout/plain_norms.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "layout/legacy_names.h"

namespace shardwright {
namespace {

TensorDesc tensor(std::string name) { return {std::move(name), DType::kBF16, {4, 4}}; }

std::vector<TensorDesc> tensors_of(const std::string& layer,
                                   const std::vector<const char*>& names) {
  std::vector<TensorDesc> tensors;
  for (const char* name : names) tensors.push_back(tensor(layer + name));
  return tensors;
}

const std::string kLayer = "decoder.layers.0.";

TEST(PlainNorms, OfAStageWithoutAttentionAreToldByItsMlps) {
  std::vector<TensorDesc> tensors =
      tensors_of(kLayer, {"self_attention.in_proj.layer_norm_weight", "pre_mlp_layernorm.weight",
                          "mlp.linear_fc1.weight"});
  EXPECT_TRUE(PlainNorms(tensors).has(kLayer + "pre_mlp_layernorm.weight"));
  tensors[2].name = kLayer + "mlp.router.weight";
  EXPECT_FALSE(PlainNorms(tensors).has_any()) << "layers with experts show it in any spec";
  tensors[2].name = kLayer + "mlp.linear_fc1.weight";
  tensors.push_back(tensor(kLayer + "self_attention.linear_kv_down_proj.weight"));
  EXPECT_FALSE(PlainNorms(tensors).has_any()) << "latent attention's have one name";
  tensors.pop_back();
  tensors[0].name = kLayer + "input_layernorm.weight";
  EXPECT_FALSE(PlainNorms(tensors).has_any()) << "delta attention's have one name";
  tensors.push_back(tensor(kLayer + "self_attention.in_proj.weight"));
  EXPECT_TRUE(PlainNorms(tensors).has_any());
}

// What writes names and what reads them leave the same layers alone.
void expect_inverse(const std::vector<TensorDesc>& canonical, const LegacyModules& modules) {
  std::vector<TensorDesc> legacy;
  for (const TensorDesc& each : canonical) {
    legacy.push_back(tensor(legacy_from_canonical(each.name, {}, std::nullopt, modules)));
  }
  const PlainNorms norms(legacy);
  for (std::size_t i = 0; i < legacy.size(); ++i) {
    const std::string& name = legacy[i].name;
    EXPECT_EQ(canonical_from_legacy(name, {}, norms.has(name)).name, canonical[i].name) << name;
  }
}

TEST(PlainNorms, StandAmongLayersWhoseNormsHaveOneName) {
  const std::vector<const char*> attending = {
      "self_attention.linear_qkv.layer_norm_weight", "self_attention.linear_qkv.weight",
      "mlp.linear_fc1.layer_norm_weight", "mlp.linear_fc1.weight"};
  // Jamba's and MiniMax's mixers, and InternViT's layers.
  const std::vector<const char*> mixing = {"input_layernorm.weight", "mamba.in_proj.weight",
                                           "mlp.linear_fc1.layer_norm_weight", "mlp.router.weight"};
  const std::vector<const char*> scaled = {"ls1", "input_layernorm.weight",
                                           "self_attention.linear_qkv.weight",
                                           "pre_mlp_layernorm.weight", "mlp.linear_fc1.weight"};
  // Gemma 4's.
  const std::vector<const char*> giving = {
      "layer_scalar", "self_attention.linear_qkv.layer_norm_weight",
      "self_attention.linear_qkv.weight", "mlp.linear_fc1.layer_norm_weight",
      "mlp.linear_fc1.weight"};
  const std::vector<const char*> foreign = {"input_layernorm.weight", "pre_mlp_layernorm.weight",
                                            "self_attn.q_proj.weight"};
  std::vector<TensorDesc> tensors;
  const auto add = [&](const std::string& layer, const std::vector<const char*>& names) {
    for (TensorDesc& each : tensors_of(layer, names)) tensors.push_back(std::move(each));
  };
  add("decoder.layers.0.", attending);
  add("decoder.layers.1.", mixing);
  add("decoder.layers.10.", giving);
  add("vision_model.decoder.layers.0.", scaled);
  add("vision_tower.transformer.layers.0.", foreign);
  LegacyModules modules;
  modules.scaled = ScaledLayers(tensors);
  expect_inverse(tensors, modules);
  modules.plain_norms = true;
  expect_inverse(tensors, modules);
  EXPECT_EQ(legacy_from_canonical(tensors[0].name, {}, std::nullopt, modules),
            "decoder.layers.0.input_layernorm.weight");
}

// torch_dist has these under the same names, whatever the language model's are called there.
TEST(PlainNorms, AreNotThoseOfMegatronsTowers) {
  const std::vector<const char*> names = {"input_layernorm.weight",
                                          "self_attention.linear_qkv.weight",
                                          "pre_mlp_layernorm.weight", "mlp.linear_fc1.weight"};
  std::vector<TensorDesc> tensors = tensors_of("vision_model." + kLayer, names);
  tensors.push_back(tensor("vision_model.position_embeddings.weight"));
  EXPECT_FALSE(PlainNorms(tensors).has_any());
  for (TensorDesc& each : tensors_of("language_model." + kLayer, names)) {
    tensors.push_back(std::move(each));
  }
  const PlainNorms norms(tensors);
  for (const char* norm : {"input_layernorm.weight", "pre_mlp_layernorm.weight"}) {
    EXPECT_TRUE(norms.has("language_model." + kLayer + norm));
    EXPECT_FALSE(norms.has("vision_model." + kLayer + norm));
  }
}

// What adapts a linear wraps it.
TEST(PlainNorms, StandBesideAWrappedLinear) {
  const std::vector<TensorDesc> tensors =
      tensors_of(kLayer, {"input_layernorm.weight", "self_attention.linear_qkv.to_wrap.weight"});
  EXPECT_TRUE(PlainNorms(tensors).has(tensors[0].name));
}

}  // namespace
}  // namespace shardwright
