// SPDX-License-Identifier: Apache-2.0
#include "model/config_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> keys_of(const std::vector<Contradiction>& found) {
  std::vector<std::string> keys;
  for (const Contradiction& each : found) keys.push_back(each.argument);
  return keys;
}

HfConfig unknown_config() {
  HfConfig config;
  config.architectures = {"NobodyForCausalLM"};
  config.values = {
      {"num_hidden_layers", std::int64_t{2}},   {"hidden_size", std::int64_t{8}},
      {"intermediate_size", std::int64_t{5}},   {"num_attention_heads", std::int64_t{4}},
      {"num_key_value_heads", std::int64_t{2}}, {"vocab_size", std::int64_t{7}}};
  return config;
}

SampleModel sample() {
  SampleModel model;
  model.heads = 4;
  model.groups = 2;
  model.hidden = 8;
  return model;
}

std::vector<std::string> with(const std::string& key, std::int64_t value) {
  HfConfig config = unknown_config();
  config.values.insert_or_assign(key, value);
  return keys_of(contradicted_config(config, sample().llama(false, false)));
}

TEST(ConfigCheck, OfTrueNumbersFindsNothing) {
  const auto tensors = sample().llama(false, false);
  EXPECT_THAT(keys_of(contradicted_config(unknown_config(), tensors)), IsEmpty());
  ASSERT_FALSE(golden_folders().empty());
  for (const std::string& folder : golden_folders()) {
    const GoldenFamily golden = load_golden(folder);
    for (const Contradiction& each : contradicted_config(golden.config, golden.hf)) {
      ADD_FAILURE() << folder << ": " << each.message;
    }
  }
}

TEST(ConfigCheck, FindsNumbersThatNoTensorShows) {
  for (const auto& [key, value] :
       {std::pair("num_hidden_layers", 3), std::pair("num_hidden_layers", 1),
        std::pair("vocab_size", 8), std::pair("intermediate_size", 6),
        std::pair("num_key_value_heads", 1), std::pair("num_key_value_heads", 4)}) {
    EXPECT_THAT(with(key, value), ElementsAre(key)) << value;
  }
  EXPECT_THAT(with("vocab_size", 6), IsEmpty()) << "Mllama has eight rows more than tokens";
  EXPECT_THAT(with("hidden_size", 16), Contains("hidden_size"));
  EXPECT_THAT(with("num_attention_heads", 8), ElementsAre("num_key_value_heads"))
      << "8 heads of 1 channel have as many rows as 4 of 2, but 2 groups have not";
  EXPECT_THAT(with("head_dim", 3), Contains("num_attention_heads"));
}

TEST(ConfigCheck, TakesTheWidthOfDenseLayersFromTheirOwnKey) {
  const auto tensors = sample().llama(false, false);
  for (const std::string key : {"dense_intermediate_size", "prefix_dense_intermediate_size"}) {
    HfConfig config = unknown_config();
    config.values.insert_or_assign("intermediate_size", std::int64_t{3});
    config.values.insert_or_assign(key, std::int64_t{5});
    EXPECT_THAT(keys_of(contradicted_config(config, tensors)), IsEmpty()) << key;
    config.values.insert_or_assign(key, std::int64_t{6});
    EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre(key));
  }
}

TEST(ConfigCheck, KnowsOtherWordsForGroups) {
  HfConfig config = unknown_config();
  config.values.erase("num_key_value_heads");
  config.values["num_attention_groups"] = std::int64_t{2};
  const std::vector<TensorDesc> tensors = sample().llama(false, false);
  EXPECT_THAT(contradicted_config(config, tensors), IsEmpty());
  config.values["num_attention_groups"] = std::int64_t{1};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_attention_groups"));
  config.values.erase("num_attention_groups");
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_key_value_heads"));
  config.values["block_configs"] = std::string("[{}]");
  EXPECT_THAT(contradicted_config(config, tensors), IsEmpty()) << "each layer has its own";
}

TEST(ConfigCheck, AsksForNoGroupsOfLayersThatAreNotThere) {
  using Types = std::vector<std::string>;
  HfConfig config = unknown_config();
  config.values["num_key_value_heads"] = std::int64_t{1};
  config.values["swa_num_key_value_heads"] = std::int64_t{2};
  const std::vector<TensorDesc> tensors = sample().llama(false, false);
  config.values["layer_types"] = Types{"sliding_attention", "sliding_attention"};
  EXPECT_THAT(contradicted_config(config, tensors), IsEmpty());
  config.values["layer_types"] = Types{"sliding_attention", "full_attention"};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_key_value_heads"));
  config.values.erase("layer_types");
  config.values["hybrid_layer_pattern"] = std::vector<std::int64_t>{1, 1};
  EXPECT_THAT(contradicted_config(config, tensors), IsEmpty());
  config.values["hybrid_layer_pattern"] = std::vector<std::int64_t>{0, 1};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_key_value_heads"));
  config.values["hybrid_layer_pattern"] = std::vector<std::int64_t>{1, 1};
  config.values["swa_num_key_value_heads"] = std::int64_t{4};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)),
              ElementsAre("swa_num_key_value_heads"));
}

TEST(ConfigCheck, ReadsAThinkersSection) {
  HfConfig config;
  for (const auto& [key, value] : unknown_config().values) {
    config.values["thinker_config.text_config." + key] = value;
  }
  std::vector<TensorDesc> tensors;
  for (TensorDesc tensor : sample().llama(false, false)) {
    tensor.name = "thinker." + tensor.name;
    tensors.push_back(tensor);
  }
  tensors.push_back({"talker.model.embed_tokens.weight", DType::kBF16, {3, 4}});
  tensors.push_back({"embed_vision.embedding.weight", DType::kBF16, {3, 4}});
  EXPECT_THAT(contradicted_config(config, tensors), IsEmpty());
  config.values["thinker_config.text_config.hidden_size"] = std::int64_t{12};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)),
              Contains("thinker_config.text_config.hidden_size"));
}

TEST(ConfigCheck, FindsNumbersThatNoModelHas) {
  for (const std::int64_t absurd :
       {std::int64_t{-3}, std::int64_t{0}, std::int64_t{1'000'000'000'000'000'000}}) {
    for (const char* const key :
         {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"}) {
      EXPECT_THAT(with(key, absurd), Contains(key)) << absurd;
    }
  }
  EXPECT_THAT(with("num_key_value_heads", 3), Contains("num_key_value_heads"));
  EXPECT_THAT(with("num_attention_heads", 3), Contains("num_attention_heads"));
  // Without tensors that could tell, too.
  HfConfig config = unknown_config();
  config.values["num_hidden_layers"] = std::int64_t{-3};
  EXPECT_THAT(keys_of(contradicted_config(config, {})), ElementsAre("num_hidden_layers"));
}

TEST(ConfigCheck, ChoosesExpertsThatThereAre) {
  HfConfig config = unknown_config();
  const auto tensors = sample().llama(false, false);
  const auto keys = [&](std::int64_t experts, std::int64_t chosen) {
    config.values.insert_or_assign("num_experts", experts);
    config.values.insert_or_assign("num_experts_per_tok", chosen);
    EXPECT_THAT(contradicted_config(config, tensors), IsEmpty()) << "tensors say nothing of it";
    return keys_of(impossible_choices(config));
  };
  EXPECT_THAT(keys(4, 4), IsEmpty());
  EXPECT_THAT(keys(0, 0), IsEmpty()) << "a dense model of a family of both";
  EXPECT_THAT(keys(4, 5), ElementsAre("num_experts_per_tok"));
  EXPECT_THAT(keys(4, 0), ElementsAre("num_experts_per_tok"));
}

TEST(ConfigCheck, OfQuantisationThatNoTensorHas) {
  const std::vector<TensorDesc> plain = {{"a.weight", DType::kBF16, {4, 4}}};
  const std::string float8 = R"({"quantization_config": {"quant_method": "fp8"}})";
  EXPECT_THAT(contradicted_quantisation(float8, plain), HasSubstr("quantised (fp8)"));
  EXPECT_EQ(contradicted_quantisation("{}", plain), "");
  const std::string unread = R"({"quantization_config": {"quant_method": "hqq"}})";
  EXPECT_EQ(contradicted_quantisation(unread, plain), "") << "nothing is known of its tensors";
  const std::vector<TensorDesc> quantised = {{"a.weight", DType::kF8E4M3, {4, 4}}};
  EXPECT_EQ(contradicted_quantisation(float8, quantised), "");
}

TEST(ConfigCheck, CountsPredictionLayersBehindTheOthers) {
  HfConfig config = unknown_config();
  config.values["num_hidden_layers"] = std::int64_t{1};
  config.values["num_nextn_predict_layers"] = std::int64_t{1};
  const auto tensors = sample().llama(false, false);
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), IsEmpty());
}

// As transformers 4 saves LongCat-Flash.
TEST(ConfigCheck, CountsAttentionsWhereLayersAreCountedToo) {
  HfConfig config = unknown_config();
  const auto tensors = sample().llama(false, false);
  config.values["num_hidden_layers"] = std::int64_t{4};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_hidden_layers"));
  config.values["num_layers"] = std::int64_t{2};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), IsEmpty());
  config.values["num_hidden_layers"] = std::int64_t{6};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), ElementsAre("num_hidden_layers"));
}

TEST(ConfigCheck, ReadsTheLanguageModelsSection) {
  HfConfig config;
  for (const auto& [key, value] : unknown_config().values) {
    config.values.emplace("text_config." + key, value);
  }
  config.values["vision_config.hidden_size"] = std::int64_t{48};
  std::vector<TensorDesc> tensors = sample().llama(false, false);
  for (TensorDesc& tensor : tensors) {
    if (tensor.name.starts_with("model.")) tensor.name.insert(6, "language_model.");
  }
  tensors.push_back({"model.visual.layers.9.mlp.down_proj.weight", DType::kBF16, {48, 96}});
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), IsEmpty());
  config.values["text_config.num_hidden_layers"] = std::int64_t{5};
  const auto found = contradicted_config(config, tensors);
  ASSERT_EQ(found.size(), 1);
  EXPECT_THAT(found[0].message, HasSubstr("text_config.num_hidden_layers is 5, but the tensors "
                                          "are of 2 layers"));
}

// As Gemma 3n has them: shorter names than the language model's.
TEST(ConfigCheck, TakesNoTowersEmbeddingForTheModels) {
  for (const char* tower : {"embed_vision", "embed_audio"}) {
    std::vector<TensorDesc> tensors = sample().llama(false, false);
    for (TensorDesc& tensor : tensors) {
      const std::string prefix = "model.";
      if (tensor.name.starts_with(prefix)) tensor.name.insert(prefix.size(), "language_model.");
    }
    EXPECT_THAT(keys_of(contradicted_config(unknown_config(), tensors)), IsEmpty());
    TensorDesc embedding = tensors.front();
    embedding.name = std::string("model.") + tower + ".embedding.weight";
    embedding.shape = {3, 6};
    tensors.push_back(std::move(embedding));
    EXPECT_THAT(keys_of(contradicted_config(unknown_config(), tensors)), IsEmpty()) << tower;
  }
}

TEST(ConfigCheck, OfADtypeThatNoTensorHas) {
  const std::string bf16 = R"({"torch_dtype": "bfloat16"})";
  std::vector<TensorDesc> tensors = {{"steps", DType::kI64, {1}}, {"w", DType::kF32, {2}}};
  EXPECT_THAT(contradicted_dtype(bf16, tensors), HasSubstr("found dtype bfloat16"));
  EXPECT_THAT(contradicted_dtype(R"({"dtype": "float16"})", tensors), HasSubstr("w is float32"));
  EXPECT_EQ(contradicted_dtype(R"({"dtype": "float32"})", tensors), "");
  EXPECT_EQ(contradicted_dtype("{}", tensors), "");
  EXPECT_EQ(contradicted_dtype(R"({"dtype": 7})", tensors), "");
  EXPECT_EQ(contradicted_dtype(bf16, std::span(tensors).first(1)), "");
  // Some may have another, and quantised ones have to.
  tensors.push_back({"norm", DType::kBF16, {2}});
  EXPECT_EQ(contradicted_dtype(bf16, tensors), "");
  tensors.back().dtype = DType::kF8E4M3;
  EXPECT_EQ(contradicted_dtype(bf16, tensors), "");
}

// The tower of Llama 3.2 Vision adds a table for each number of tiles, its places in a row.
TEST(ConfigCheck, TablesOfPositionsAreNoneOfTokens) {
  HfConfig config;
  config.values["hidden_size"] = std::int64_t{48};
  config.values["vocab_size"] = std::int64_t{128};
  const auto contradicted_by = [&](const char* name) {
    return keys_of(
        contradicted_config(config, std::vector<TensorDesc>{{name, DType::kBF16, {3, 96}}}));
  };
  EXPECT_THAT(contradicted_by("pre_tile_positional_embedding.embedding.weight"), IsEmpty());
  EXPECT_THAT(contradicted_by("model.embedding.weight"), Contains("hidden_size"));
}

// transformers builds each layer by its entry alone (Laguna).
TEST(ConfigCheck, LayersMayHaveHeadsOfTheirOwn) {
  HfConfig config = unknown_config();
  config.values["num_attention_heads"] = std::int64_t{3};
  const auto tensors = sample().llama(false, false);
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), Contains("num_attention_heads"));
  config.values["num_attention_heads_per_layer"] = std::vector<std::int64_t>{2, 2};
  EXPECT_THAT(keys_of(contradicted_config(config, tensors)), IsEmpty());
}

}  // namespace
}  // namespace shardwright
