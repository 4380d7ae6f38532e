// SPDX-License-Identifier: Apache-2.0
#include "model/nearest_family.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kNearestConfig = R"({"architectures": ["A"], "model_type": "a",
    "num_hidden_layers": 2, "hidden_size": 4, "vocab_size": 6})";

constexpr std::string_view kNearestLayers = R"({"use": "layer", "for": "layer",
    "megatron": "decoder.layers.{layer}.", "hf": "l.{layer}."})";

std::string nearest_mapping_text(std::string_view rules, std::string_view family,
                                 std::string_view config = "") {
  return fmt::format(R"({{"family": "{}", "architectures": ["A"], "model_types": ["a"],
      "sizes": {{"layers": {{"hf": "num_hidden_layers", "args": "num_layers"}},
                 "hidden": {{"hf": "hidden_size", "args": "hidden_size"}},
                 "vocab": {{"hf": "vocab_size", "args": "padded_vocab_size"}}}},
      "indices": {{"layer": {{"size": "layers"}}}},
      "groups": {{"layer": [
        {{"megatron": "fc1", "transform": "concat", "hf": ["gate", "up"],
          "shape": ["2 * hidden", "hidden"]}},
        {{"megatron": "norm", "hf": "norm", "shape": ["hidden"]}}]}},
      "config": {{{}}},
      "rules": [{}], "ignore": ["inv_freq"]}})",
                     family, config, rules);
}

std::vector<TensorDesc> nearest_model() {
  std::vector<TensorDesc> tensors;
  for (const char* layer : {"l.0.", "l.1."}) {
    tensors.push_back({layer + std::string("gate"), DType::kBF16, {4, 4}});
    tensors.push_back({layer + std::string("up"), DType::kBF16, {4, 4}});
    tensors.push_back({layer + std::string("norm"), DType::kBF16, {4}});
  }
  return tensors;
}

TEST(NearestFamily, IsTheOneThatTakesMost) {
  const std::string plain = nearest_mapping_text(kNearestLayers, "plain");
  const std::string more = nearest_mapping_text(
      std::string(kNearestLayers) + R"(, {"megatron": "e", "hf": "embed"})", "more");
  const std::array<MappingText, 2> texts{MappingText{"p.json", plain}, MappingText{"m.json", more}};
  const std::vector<Mapping> mappings = parse_mappings(texts).value();
  const HfConfig config = read_hf_config(kNearestConfig).value();
  std::vector<TensorDesc> tensors = nearest_model();
  tensors.push_back({"l.0.bias", DType::kBF16, {4}});
  tensors.push_back({"l.1.bias", DType::kBF16, {4}});
  EXPECT_EQ(nearest_family(mappings, config, tensors),
            "nearest is plain, which takes 6 of 8 tensors, leaves l.*.bias");
  tensors.push_back({"embed", DType::kBF16, {4}});
  EXPECT_EQ(nearest_family(mappings, config, tensors),
            "nearest is more, which takes 7 of 9 tensors, leaves l.*.bias");
  const std::vector<TensorDesc> strange = {{"x", DType::kBF16, {4}}};
  EXPECT_EQ(nearest_family(mappings, config, strange), "");
}

TEST(NearestFamily, NamesAllThatFitAlikeAndWhatEachWrites) {
  const std::string turned = nearest_mapping_text(
      kNearestLayers, "a_turned", R"("turn": {"args": "rotary_interleaved", "value": true})");
  const std::string plain = nearest_mapping_text(kNearestLayers, "plain");
  const std::array<MappingText, 2> texts{MappingText{"a.json", turned},
                                         MappingText{"p.json", plain}};
  std::vector<Mapping> mappings = parse_mappings(texts).value();
  const HfConfig config = read_hf_config(kNearestConfig).value();
  const std::string tie = nearest_family(mappings, config, nearest_model());
  EXPECT_EQ(tie,
            "as near as any is a_turned, which takes 6 of 6 tensors; as many are taken by plain "
            "(writes rotary_interleaved unset for True); --family says which of them the model is");
  std::ranges::reverse(mappings);
  EXPECT_EQ(nearest_family(mappings, config, nearest_model()), tie)
      << "their order does not matter";
}

// What a model is called, then what its config.json says, comes before the alphabet.
TEST(NearestFamily, IsRankedByTheConfig) {
  const std::string first = nearest_mapping_text(
      kNearestLayers, "a_first", R"("turn": {"args": "rotary_interleaved", "value": true})");
  const std::string keyed =
      nearest_mapping_text(kNearestLayers, "keyed", R"("tone": {"hf": "tone", "args": "tone"})");
  const std::string named = nearest_mapping_text(kNearestLayers, "named");
  const std::array<MappingText, 3> texts{MappingText{"a.json", first}, MappingText{"k.json", keyed},
                                         MappingText{"n.json", named}};
  const std::vector<Mapping> mappings = parse_mappings(texts).value();
  HfConfig config = read_hf_config(kNearestConfig).value();
  config.values["tone"] = std::int64_t{7};
  EXPECT_THAT(
      nearest_family(mappings, config, nearest_model()),
      AllOf(StartsWith("nearest is keyed, which takes 6 of 6 tensors; as many"),
            HasSubstr("a_first (writes rotary_interleaved True for unset, tone unset for 7)")));
  config.architectures = {"WellNamedForCausalLM"};
  EXPECT_THAT(
      nearest_family(mappings, config, nearest_model()),
      AllOf(StartsWith("nearest is named, which"), HasSubstr("keyed"), HasSubstr("a_first")));
}

// A family that cannot say what config.json does comes behind one that can.
TEST(NearestFamily, IsTheOneThatSaysWhatTheConfigDoes) {
  const std::string doubtful =
      nearest_mapping_text(kNearestLayers, "a_doubtful", R"("tone": {"hf": "tone", "value": 1})");
  const std::string sure =
      nearest_mapping_text(kNearestLayers, "b_sure", R"("tone": {"hf": "tone", "args": "tone"})");
  const std::array<MappingText, 2> texts{MappingText{"a.json", doubtful},
                                         MappingText{"b.json", sure}};
  const std::vector<Mapping> mappings = parse_mappings(texts).value();
  HfConfig config = read_hf_config(kNearestConfig).value();
  config.values["tone"] = std::int64_t{7};
  EXPECT_THAT(nearest_family(mappings, config, nearest_model()),
              StartsWith("nearest is b_sure, which"));
}

// The shipped families: a model of Llama's shape that nobody knows.
TEST(NearestFamily, OfALlamaShapedModelIsNotTheFirstOfTheAlphabet) {
  SampleModel sample;
  HfConfig config = read_hf_config(R"({"architectures": ["NobodyForCausalLM"],
      "model_type": "nobody", "num_hidden_layers": 2, "hidden_size": 6, "intermediate_size": 5,
      "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 2, "vocab_size": 7,
      "attention_bias": false, "mlp_bias": false, "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
      "hidden_act": "silu", "max_position_embeddings": 64, "tie_word_embeddings": false})")
                        .value();
  const auto tensors = sample.llama(false, false);
  const std::string told = nearest_family(shipped_mappings(), config, tensors);
  EXPECT_THAT(told, AllOf(StartsWith("nearest is llama, which takes 21 of 21 tensors"),
                          HasSubstr("--family says which of them the model is")));
  EXPECT_THAT(told, Not(HasSubstr("nearest is ernie4_5")));
  config.architectures = {"Ernie9ForCausalLM"};
  config.model_type = "ernie4_5_next";
  EXPECT_THAT(nearest_family(shipped_mappings(), config, tensors),
              AllOf(StartsWith("nearest is ernie4_5, which"), HasSubstr("llama (writes")));
}

}  // namespace
}  // namespace shardwright
