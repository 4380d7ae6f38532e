// SPDX-License-Identifier: Apache-2.0
#include "format/consolidated/meta_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Catalog catalog() {
  Catalog catalog;
  for (const auto& [name, shape] : std::initializer_list<std::pair<const char*, Dims>>{
           {"tok_embeddings.weight", {16, 8}}, {"layers.0.feed_forward.w1.weight", {24, 8}}}) {
    catalog.tensors.push_back({{name, DType::kBF16, shape}, ChunkList(2), Encoding::kRaw});
  }
  return catalog;
}

// Of a params.json with these keys beside those that every one has.
Result<std::string> config_with(const std::string& more) {
  Notes notes;
  return config_from_params(R"({"dim": 8, "n_layers": 1, "n_heads": 2)" + more + "}", catalog(),
                            notes);
}

nlohmann::json written_with(const std::string& more) {
  const auto config = config_with(more);
  if (!config) {
    ADD_FAILURE() << config.error().text();
    return {};
  }
  return nlohmann::json::parse(*config);
}

std::string refused(const std::string& more) {
  const auto config = config_with(more);
  if (config) {
    ADD_FAILURE() << more << " was read as " << *config;
    return {};
  }
  EXPECT_EQ(config.error().code, Code::kConfigMissing) << more;
  return config.error().message;
}

TEST(MetaConfig, IsNotWrittenOfOtherSizesThanTensorsShow) {
  EXPECT_THAT(
      refused(R"(, "vocab_size": 32)"),
      HasSubstr("params.json: found vocab_size = 32, expected 16 as tok_embeddings.weight"));
  EXPECT_EQ(written_with(R"(, "vocab_size": 16)")["vocab_size"], 16);
  EXPECT_EQ(written_with(R"(, "vocab_size": -1)")["vocab_size"], 16);
  Catalog tensors = catalog();
  for (const char* name : {"layers.0.attention.wq.weight", "layers.1.attention.wq.weight"}) {
    tensors.tensors.push_back({{name, DType::kBF16, {8, 8}}, ChunkList(2), Encoding::kRaw});
  }
  Notes notes;
  const auto read = [&](const char* params) { return config_from_params(params, tensors, notes); };
  EXPECT_TRUE(read(R"({"dim": 8, "n_layers": 2, "n_heads": 2})"));
  const auto fewer = read(R"({"dim": 8, "n_layers": 1, "n_heads": 2})");
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().message,
              HasSubstr("found n_layers = 1, expected 2 as layers.1.attention.wq.weight shows"));
  const auto wider = read(R"({"dim": 16, "n_layers": 2, "n_heads": 2})");
  ASSERT_FALSE(wider);
  EXPECT_THAT(wider.error().message, HasSubstr("found dim = 16, expected 8"));
}

TEST(MetaConfig, IsWrittenOfWhatMetaPublishes) {
  const nlohmann::json config = written_with(
      R"(, "n_kv_heads": 1, "norm_eps": 1e-06, "rope_theta": 500000.0, "use_scaled_rope": false,
          "vocab_size": -1, "multiple_of": 1024, "ffn_dim_multiplier": 1.3, "max_batch_size": 32,
          "max_seq_len": 2048, "model_parallel_size": 2, "hidden_dim": 24, "moe": null,
          "quantization_args": false)");
  EXPECT_EQ(config["num_key_value_heads"], 1);
  EXPECT_EQ(config["rms_norm_eps"], 1e-6);
  EXPECT_EQ(config["rope_theta"], 500000.0);
  EXPECT_EQ(config["intermediate_size"], 24);
  EXPECT_FALSE(config.contains("head_dim"));
  EXPECT_EQ(written_with(R"(, "n_kv_heads": null, "rope_theta": null)")["num_key_value_heads"], 2);
}

TEST(MetaConfig, HeadsOfAnotherSizeAreWritten) {
  EXPECT_EQ(written_with(R"(, "head_dim": 2)")["head_dim"], 2);
  EXPECT_FALSE(written_with(R"(, "head_dim": 4)").contains("head_dim")) << "that of dim / n_heads";
}

TEST(MetaConfig, WhatItHasNoPlaceForIsNamed) {
  EXPECT_THAT(refused(R"(, "sliding_window": 4096, "moe": {"num_experts": 8}, "tied": true,
                          "note": "a text that is longer than anybody wants to read here")"),
              AllOf(HasSubstr("it says moe, note, sliding_window = 4096, tied = true, which"),
                    HasSubstr("--hf-config")));
  for (const char* more :
       {R"(, "lora_args": {})", R"(, "window": 0)", R"(, "rope_scaling": "yarn")"}) {
    EXPECT_THAT(refused(more), HasSubstr("it says")) << more;
  }
}

TEST(MetaConfig, ScaledRotaryEmbeddingsAreRefusedHoweverTheyAreSaid) {
  for (const char* value : {"true", "1", "\"yes\"", "{}"}) {
    EXPECT_THAT(
        refused(fmt::format(R"(, "use_scaled_rope": {})", value)),
        AllOf(HasSubstr("it says use_scaled_rope, but not by what factor"), Not(HasSubstr("="))))
        << value;
  }
}

TEST(MetaConfig, NumbersThatAreNoneAreNoDefaults) {
  EXPECT_THAT(refused(R"(, "rope_theta": "1e6")"), HasSubstr("rope_theta"));
  EXPECT_THAT(refused(R"(, "norm_eps": [1])"), HasSubstr("norm_eps"));
  EXPECT_THAT(refused(R"(, "n_kv_heads": 1.5)"), HasSubstr("n_kv_heads"));
  EXPECT_THAT(refused(R"(, "head_dim": "64")"), HasSubstr("head_dim"));
}

}  // namespace
}  // namespace shardwright
