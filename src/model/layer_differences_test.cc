// SPDX-License-Identifier: Apache-2.0
#include "model/layer_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using LayersJson = nlohmann::json;

LayersJson mixers(const std::string& epsilon, const LayersJson& settings) {
  LayersJson json = {{"hidden_size", 64},
                     {"intermediate_size", 96},
                     {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},
                     {"num_hidden_layers", 2},
                     {"vocab_size", 128},
                     {"mamba_n_heads", 4},
                     {"mamba_d_head", 32},
                     {"mamba_n_groups", 1},
                     {"mamba_d_state", 16},
                     {"mamba_num_heads", 4},
                     {"mamba_head_dim", 32},
                     {"n_groups", 1},
                     {"ssm_state_size", 16},
                     {"head_dim", 16},
                     {"attn_layer_indices", {1}},
                     {"hybrid_override_pattern", "M*"},
                     {epsilon, 1e-5}};
  json.update(settings);
  return json;
}

Result<ArgsFromConfig> layered_arguments(const std::string& family, LayersJson json) {
  const Mapping& mapping = shipped(family);
  json["architectures"] = {mapping.architectures[0]};
  json["model_type"] = mapping.model_types[0];
  return args_from_hf_config(mapping, read_hf_config(json.dump()).value());
}

std::vector<std::string> layer_notes(const std::string& family, const LayersJson& json) {
  return layered_arguments(family, json).value().notes;
}

TEST(LayerDifferences, TheEpsilonOfMambaMixers) {
  const auto told = Contains(HasSubstr("norms in Mamba mixers have an epsilon of 1e-06"));
  EXPECT_THAT(layer_notes("bamba", mixers("rms_norm_eps", {{"rms_norm_eps", 1e-6}})), told);
  EXPECT_THAT(layer_notes("bamba", mixers("rms_norm_eps", LayersJson::object())), Not(told));
  const Arguments hybrid = {{"mamba_state_dim", std::int64_t{16}},
                            {"mamba_num_heads", std::int64_t{4}},
                            {"norm_epsilon", 1e-6}};
  EXPECT_THAT(layer_differences(shipped("bamba"), {}, hybrid), told);
  EXPECT_THAT(layer_differences(shipped("zamba2"), {}, hybrid), testing::IsEmpty())
      << "its mixers have one of their own";
  const LayersJson other = {{"layer_norm_epsilon", 1e-6}};
  EXPECT_THAT(layer_notes("nemotron_h", mixers("layer_norm_epsilon", other)), told);
  const LayersJson llama = {{"hidden_size", 64},        {"intermediate_size", 96},
                            {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                            {"num_hidden_layers", 2},   {"vocab_size", 128},
                            {"rms_norm_eps", 1e-6}};
  EXPECT_THAT(layer_notes("llama", llama), Not(told)) << "no mixers";
  const ArgsFromConfig made =
      layered_arguments("bamba", mixers("rms_norm_eps", LayersJson::object())).value();
  Arguments run(made.values.begin(), made.values.end());
  run["layernorm_epsilon"] = 1e-6;
  EXPECT_THAT(config_from_args(shipped("bamba"), run).value().notes, told);
}

TEST(LayerDifferences, LimitsOfMambasSteps) {
  const auto told = Contains(HasSubstr("steps of Mamba mixers are kept within time_step_limit"));
  const auto notes = [](const char* limit) {
    LayersJson json = mixers("rms_norm_eps", LayersJson::object());
    json["time_step_limit"] = "LIMIT";
    std::string text = json.dump();
    json.erase("time_step_limit");
    const std::string place = "\"LIMIT\"";
    text.replace(text.find(place), place.size(), limit);
    const Mapping& mapping = shipped("bamba");
    const HfConfig config = read_hf_config(text).value();
    return args_from_hf_config(mapping, config).value().notes;
  };
  EXPECT_THAT(notes("[0.01, 0.1]"), told);
  EXPECT_THAT(notes(R"([0.01, {"__float__": "Infinity"}])"), told);
  EXPECT_THAT(notes("[0.01, Infinity]"), told);
  EXPECT_THAT(notes("[0.0, 0.1]"), told);
  EXPECT_THAT(notes("[0.0, Infinity]"), Not(told));
  EXPECT_THAT(notes(R"([0.0, {"__float__": "Infinity"}])"), Not(told));
  EXPECT_THAT(layer_notes("nemotron_h", mixers("layer_norm_epsilon", {{"time_step_min", 0.01}})),
              Contains(HasSubstr("time_step_min = 0.01 is kept")));
}

TEST(LayerDifferences, KernelsOfOtherWidths) {
  const auto told = Contains(HasSubstr("where Megatron has 4 fixed"));
  for (const char* family : {"bamba", "falcon_h1"}) {
    EXPECT_THAT(layer_notes(family, mixers("rms_norm_eps", {{"mamba_d_conv", 8}})), told) << family;
    EXPECT_THAT(layer_notes(family, mixers("rms_norm_eps", {{"mamba_d_conv", 4}})), Not(told));
  }
  EXPECT_THAT(layer_notes("nemotron_h", mixers("layer_norm_epsilon", {{"conv_kernel", 8}})), told);
}

LayersJson pictures(const std::string& language, const LayersJson& settings) {
  LayersJson text = {{"model_type", language},  {"hidden_size", 64},
                     {"intermediate_size", 96}, {"num_attention_heads", 4},
                     {"num_hidden_layers", 2},  {"num_key_value_heads", 2},
                     {"vocab_size", 128}};
  text.update(settings);
  return {{"text_config", text},
          {"vision_config",
           {{"model_type", "clip_vision_model"},
            {"hidden_size", 64},
            {"intermediate_size", 96},
            {"num_attention_heads", 4},
            {"num_hidden_layers", 2},
            {"image_size", 28},
            {"patch_size", 14}}}};
}

TEST(LayerDifferences, WindowsOfLanguageModelsInVisionModels) {
  const auto told = Contains(HasSubstr("layers have a sliding window of sliding_window = 3"));
  const LayersJson used = {
      {"use_sliding_window", true}, {"sliding_window", 3}, {"max_window_layers", 1}};
  const auto with = [&](const LayersJson& more) {
    LayersJson json = used;
    json.update(more);
    return pictures("qwen2", json);
  };
  EXPECT_THAT(layer_notes("llava", with(LayersJson::object())), told);
  EXPECT_THAT(layer_notes("llava", with({{"use_sliding_window", false}})), Not(told));
  EXPECT_THAT(layer_notes("llava", with({{"sliding_window", nullptr}})), Not(told));
  EXPECT_THAT(layer_notes("llava", with({{"max_window_layers", 2}})), Not(told)) << "no layer";
  const LayersJson whole = {"full_attention", "full_attention"};
  EXPECT_THAT(layer_notes("llava", with({{"layer_types", whole}})), Not(told));
}

TEST(LayerDifferences, BiasesOfLanguageModelsInVisionModels) {
  const auto both = [](bool attention, bool mlp) {
    return layered_arguments("llava",
                             pictures("llama", {{"attention_bias", attention}, {"mlp_bias", mlp}}));
  };
  const ArgsFromConfig biased = both(true, true).value();
  EXPECT_THAT(biased.values, Contains(Pair("add_qkv_bias", ArgValue{true})));
  EXPECT_THAT(biased.values, Contains(Pair("add_bias_linear", ArgValue{true})));
  const ArgsFromConfig plain = both(false, false).value();
  EXPECT_THAT(plain.values, Contains(Pair("add_qkv_bias", ArgValue{false})));
  EXPECT_THAT(plain.values, Contains(Pair("add_bias_linear", ArgValue{false})));
  const auto one = both(true, false);
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, HasSubstr("attention_bias = True and "));
  const ArgsFromConfig qwen =
      layered_arguments("llava", pictures("qwen2", LayersJson::object())).value();
  EXPECT_THAT(qwen.values, Contains(Pair("add_qkv_bias", ArgValue{true})));
  EXPECT_THAT(qwen.values, Contains(Pair("add_bias_linear", ArgValue{false})));
}

TEST(LayerDifferences, BiasesThatMegatronHasNoModuleFor) {
  LayersJson chat = {{"hidden_size", 64},        {"intermediate_size", 96},
                     {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                     {"num_hidden_layers", 2},   {"vocab_size", 128}};
  EXPECT_TRUE(layered_arguments("nanochat", chat));
  chat["attention_bias"] = true;
  const auto biased = layered_arguments("nanochat", chat);
  ASSERT_FALSE(biased);
  EXPECT_EQ(biased.error().code, Code::kConfigMissing);
}

TEST(LayerDifferences, SettingsThatMegatronCoreIgnores) {
  const LayersJson bloom = {{"hidden_size", 64},
                            {"n_head", 4},
                            {"n_layer", 2},
                            {"vocab_size", 128},
                            {"apply_residual_connection_post_layernorm", true}};
  EXPECT_THAT(layer_notes("bloom", bloom),
              Contains(HasSubstr("with which Megatron-Core computes nothing")));
  const LayersJson ernie = {{"hidden_size", 64},           {"intermediate_size", 96},
                            {"num_attention_heads", 4},    {"num_key_value_heads", 2},
                            {"num_hidden_layers", 2},      {"vocab_size", 128},
                            {"moe_num_experts", 4},        {"moe_num_shared_experts", 1},
                            {"moe_intermediate_size", 32}, {"moe_norm_min", 0.1}};
  EXPECT_THAT(layer_notes("ernie4_5_moe", ernie), Contains(HasSubstr("moe_norm_min = 0.1")));
}

}  // namespace
}  // namespace shardwright
