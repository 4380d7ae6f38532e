// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/nemo_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/prefixed_names.h"

namespace shardwright {
namespace {

TEST(NemoConfig, SpeaksMegatronsWords) {
  const Arguments arguments = arguments_of_nemo(
                                  "num_layers: 2\n"
                                  "hidden_size: 64\n"
                                  "activation: fast-swiglu\n"
                                  "normalization: rmsnorm\n"
                                  "layernorm_epsilon: 1.0e-05\n"
                                  "bias: false\n"
                                  "share_embeddings_and_output_weights: false\n"
                                  "tokenizer: {library: huggingface}\n")
                                  .value();
  EXPECT_EQ(arguments.at("num_layers"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(arguments.at("swiglu"), ArgValue{true});
  EXPECT_EQ(arguments.at("normalization"), ArgValue{std::string("RMSNorm")});
  EXPECT_EQ(arguments.at("norm_epsilon"), ArgValue{1e-5});
  EXPECT_EQ(arguments.at("add_bias_linear"), ArgValue{false});
  EXPECT_EQ(arguments.at("untie_embeddings_and_output_weights"), ArgValue{true});
}

TEST(NemoConfig, HandsOnWhatItHasNoKeyFor) {
  const Arguments arguments =
      arguments_of_nemo(
          "num_layers: 2\n"
          "mcore_customization_config: {\"attn_logit_softcapping\": 50.0}\n")
          .value();
  EXPECT_EQ(arguments.at("attn_logit_softcapping"), ArgValue{50.0});
  EXPECT_EQ(arguments_of_nemo("mcore_customization_config:\n  query_pre_attn_scalar: 144\n")
                .value()
                .at("query_pre_attn_scalar"),
            ArgValue{std::int64_t{144}});
}

TEST(NemoConfig, SaysHowPositionsAreScaled) {
  const auto of = [](const std::string& yaml) { return arguments_of_nemo(yaml).value(); };
  const Arguments scaled = of("scale_positional_embedding: true\n");
  EXPECT_EQ(scaled.at("use_rope_scaling"), ArgValue{true});
  EXPECT_EQ(scaled.at("rope_scaling_factor"), ArgValue{8.0});
  const Arguments later = of("scale_positional_embedding: true\nscale_factor: 32\n");
  EXPECT_EQ(later.at("rope_scaling_factor"), ArgValue{std::int64_t{32}});
  const Arguments plain = of("scale_positional_embedding: false\nscale_factor: 32\n");
  EXPECT_FALSE(plain.contains("use_rope_scaling"));
  EXPECT_FALSE(plain.contains("rope_scaling_factor"));
  EXPECT_EQ(of("seq_len_interpolation_factor: 4\n").at("rotary_seq_len_interpolation_factor"),
            ArgValue{std::int64_t{4}});
}

TEST(NemoConfig, TellsGatesApart) {
  for (const char* gate : {"geglu", "fast-geglu"}) {
    const Arguments arguments = arguments_of_nemo(std::string("activation: ") + gate).value();
    EXPECT_EQ(arguments.at("geglu"), ArgValue{true}) << gate;
    EXPECT_EQ(arguments.at("gated_linear_unit"), ArgValue{true}) << gate;
    EXPECT_FALSE(arguments.contains("swiglu")) << gate;
  }
  for (const char* gate : {"reglu", "fast-reglu"}) {
    const Arguments arguments = arguments_of_nemo(std::string("activation: ") + gate).value();
    EXPECT_EQ(arguments.at("reglu"), ArgValue{true}) << gate;
    EXPECT_EQ(arguments.at("gated_linear_unit"), ArgValue{true}) << gate;
  }
  EXPECT_FALSE(arguments_of_nemo("activation: gelu").value().contains("gated_linear_unit"));
}

TEST(NemoConfig, TakesTheVocabularyOfWhatIsStored) {
  Catalog catalog;
  catalog.tensors.push_back({{"embedding.word_embeddings.weight", DType::kBF16, {512, 64}},
                             ChunkList(2),
                             Encoding::kRaw});
  Arguments arguments;
  take_vocabulary(catalog, arguments);
  EXPECT_EQ(arguments.at("padded_vocab_size"), ArgValue{std::int64_t{512}});
  arguments["padded_vocab_size"] = std::int64_t{500};
  take_vocabulary(catalog, arguments);
  EXPECT_EQ(arguments.at("padded_vocab_size"), ArgValue{std::int64_t{500}});
}

TEST(NemoConfig, RefusesWhatItCannotSay) {
  EXPECT_EQ(arguments_of_nemo("megatron_legacy: true\n").error().code, Code::kUnsupportedFormat);
  EXPECT_EQ(arguments_of_nemo("a: [1\n").error().code, Code::kYamlCorrupt);
  EXPECT_EQ(arguments_of_nemo("- a\n").error().code, Code::kYamlCorrupt);
}

Catalog catalog_of(std::initializer_list<const char*> names) {
  Catalog catalog;
  for (const char* name : names) {
    catalog.tensors.push_back({{name, DType::kF32, {1}}, ChunkList(1), Encoding::kRaw});
  }
  return catalog;
}

TEST(NemoNames, LoseTheirPrefix) {
  Catalog catalog = catalog_of({"module.decoder.layers.mlp.linear_fc1.weight",
                                "module.embedding.word_embeddings.weight",
                                "optimizer.state.exp_avg.module.decoder.final_layernorm.weight"});
  catalog.objects.push_back({"module.decoder.layers.0._extra_state/shard_0_1", 0, {}});
  ASSERT_TRUE(has_prefixed_names(catalog, kNemoPrefix));
  take_prefix_off(kNemoPrefix, catalog);
  EXPECT_EQ(catalog.tensors[0].desc.name, "decoder.layers.mlp.linear_fc1.weight");
  EXPECT_EQ(catalog.tensors[2].desc.name, "optimizer.state.exp_avg.decoder.final_layernorm.weight");
  EXPECT_EQ(catalog.objects[0].name, "decoder.layers.0._extra_state/shard_0_1");
}

TEST(NemoNames, AreThoseOfAllTensorsOfAModel) {
  EXPECT_FALSE(
      has_prefixed_names(catalog_of({"module.decoder.a", "output_layer.weight"}), kNemoPrefix));
  EXPECT_FALSE(has_prefixed_names(catalog_of({"module.0.weight"}), kNemoPrefix));
  EXPECT_FALSE(has_prefixed_names(catalog_of({"language_model.module.decoder.a"}), kNemoPrefix));
  EXPECT_FALSE(has_prefixed_names({}, kNemoPrefix));
}

}  // namespace
}  // namespace shardwright
