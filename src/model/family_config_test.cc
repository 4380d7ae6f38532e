// SPDX-License-Identifier: Apache-2.0
// What the configurations of published models become, and what they come back as.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/config.h"
#include "model/differing_settings.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using Json = nlohmann::json;
using List = std::vector<std::int64_t>;
using testing::Contains;
using testing::HasSubstr;

Json gemma2_2b() {
  return Json::parse(R"({
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304,
    "intermediate_size": 9216, "num_attention_heads": 8, "num_hidden_layers": 26,
    "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000, "sliding_window": 4096,
    "query_pre_attn_scalar": 256, "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "max_position_embeddings": 8192})");
}

Json gemma3_1b() {
  return Json::parse(R"({
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 1152,
    "intermediate_size": 6912, "num_attention_heads": 4, "num_hidden_layers": 26,
    "num_key_value_heads": 1, "head_dim": 256, "vocab_size": 262144, "sliding_window": 512,
    "sliding_window_pattern": 6, "query_pre_attn_scalar": 168, "rope_theta": 1000000,
    "rope_local_base_freq": 10000, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-06})");
}

Json minimax_m2() {
  return Json::parse(R"({
    "architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "hidden_size": 3072,
    "intermediate_size": 1536, "num_attention_heads": 48, "num_hidden_layers": 62,
    "num_key_value_heads": 8, "head_dim": 128, "rotary_dim": 64, "num_local_experts": 256,
    "num_experts_per_tok": 8, "scoring_func": "sigmoid", "rope_theta": 5000000,
    "use_routing_bias": true, "vocab_size": 200064, "max_position_embeddings": 196608})");
}

Json ernie_21b() {
  return Json::parse(R"({
    "architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe",
    "hidden_size": 2560, "intermediate_size": 12288, "num_attention_heads": 20,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 103424,
    "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2,
    "moe_intermediate_size": 1536, "moe_layer_start_index": 1, "moe_layer_end_index": -1,
    "moe_layer_interval": 1, "rope_theta": 500000.0, "max_position_embeddings": 131072})");
}

ArgsFromConfig converted_family(const Json& json) {
  const auto config = read_hf_config(json.dump());
  if (!config) throw std::runtime_error(config.error().message);
  const auto args = args_from_hf_config(**find_family(shipped_mappings(), *config), *config);
  if (!args) throw std::runtime_error(args.error().message);
  return *args;
}

ArgValue argument(const Json& json, const std::string& name) {
  for (const auto& [key, value] : converted_family(json).values) {
    if (key == name) return value;
  }
  return ArgValue{"none of this name"};
}

/// config.json -> arguments -> config.json.
Json family_and_back(const Json& json) {
  const ArgsFromConfig args = converted_family(json);
  const Mapping& family = **find_family(shipped_mappings(), *read_hf_config(json.dump()));
  const auto back = config_from_args(family, Arguments(args.values.begin(), args.values.end()));
  if (!back) throw std::runtime_error(back.error().message);
  return Json::parse(back->json);
}

std::string family_refusal(const Json& json) {
  const auto config = read_hf_config(json.dump());
  const auto args = args_from_hf_config(**find_family(shipped_mappings(), *config), *config);
  return args ? "accepted" : args.error().message;
}

std::string refusal_back(const std::string& family, Arguments args) {
  args.insert({{"num_layers", ArgValue{std::int64_t{4}}},
               {"hidden_size", ArgValue{std::int64_t{8}}},
               {"ffn_hidden_size", ArgValue{std::int64_t{8}}},
               {"num_attention_heads", ArgValue{std::int64_t{2}}},
               {"padded_vocab_size", ArgValue{std::int64_t{8}}}});
  const auto config = config_from_args(shipped(family), args);
  return config ? "accepted" : config.error().message;
}

TEST(Families, WithZeroCentredNormsSayItUnderEitherName) {
  int families = 0;
  for (const Mapping& mapping : shipped_mappings()) {
    const auto says = [&](std::string_view name) {
      return std::ranges::any_of(mapping.config, [&](const ConfigRule& rule) {
        return rule.args.size() == 1 && rule.args[0] == name && rule.value == ArgValue{true};
      });
    };
    const bool has_flag = says("apply_layernorm_1p");
    families += has_flag ? 1 : 0;
    EXPECT_EQ(has_flag, says("layernorm_zero_centered_gamma"))
        << mapping.family << ": Megatron-LM hands on the second alone since 0.17";
  }
  EXPECT_GT(families, 10);
}

TEST(Gemma2, AlternatesWindowsAndScalesByItsOwnNumber) {
  EXPECT_EQ(argument(gemma2_2b(), "window_size"), ArgValue(List{4095, 0}));
  EXPECT_EQ(argument(gemma2_2b(), "window_attn_skip_freq"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(argument(gemma2_2b(), "softmax_scale"), ArgValue{0.0625});
  EXPECT_EQ(argument(gemma2_2b(), "apply_layernorm_1p"), ArgValue{true});
  EXPECT_EQ(argument(gemma2_2b(), "untie_embeddings_and_output_weights"), ArgValue{false})
      << "tied where nothing says it";
  const Json back = family_and_back(gemma2_2b());
  EXPECT_EQ(back["query_pre_attn_scalar"], 256);
  EXPECT_EQ(back["attn_logit_softcapping"], 50.0);
  EXPECT_EQ(back["layer_types"][0], "sliding_attention");
  EXPECT_EQ(back["layer_types"][25], "full_attention");
}

TEST(Gemma2, SaysWhatMegatronCoreDoesNotCompute) {
  const std::vector<std::string> notes = converted_family(gemma2_2b()).notes;
  EXPECT_THAT(notes, Contains(HasSubstr("attn_logit_softcapping = 50 is kept as argument")));
  EXPECT_THAT(notes, Contains(HasSubstr("square root of hidden_size")));
  Json uncapped = gemma2_2b();
  uncapped["attn_logit_softcapping"] = nullptr;
  EXPECT_THAT(converted_family(uncapped).notes, Not(Contains(HasSubstr("attn_logit_softcapping"))));
  EXPECT_EQ(family_and_back(uncapped)["attn_logit_softcapping"], nullptr);
  uncapped.erase("attn_logit_softcapping");  // the class has a default
  EXPECT_EQ(argument(uncapped, "attn_logit_softcapping"), ArgValue{50.0});
}

// A run without groups of experts is not one that says nothing of them.
TEST(DeepseekV3, WithoutGroupsOfExpertsSaysSo) {
  const Mapping& family = **find_family(shipped_mappings(), "deepseek_v3");
  const GoldenFamily golden = load_golden("deepseek_v3");
  const ArgsFromConfig made = args_from_hf_config(family, golden.config).value();
  Arguments run(made.values.begin(), made.values.end());
  run["moe_router_num_groups"] = run["moe_router_group_topk"] = ArgValue{};
  const Json config = Json::parse(config_from_args(family, run)->json);
  EXPECT_EQ(config["n_group"], 1);
  EXPECT_EQ(config["topk_group"], 1);
  const auto differing = differing_settings(family, golden.config, run);
  ASSERT_TRUE(differing) << differing.error().text();
  ASSERT_EQ(differing->size(), 1u);  // one chosen group of two is as none
  EXPECT_EQ(differing->front().argument, "moe_router_num_groups");
  EXPECT_EQ(differing->front().of_config, ArgValue{std::int64_t{2}});
  EXPECT_TRUE(differing_settings(family, *read_hf_config(config.dump()), run)->empty());
}

TEST(Gemma2, TheScaleAloneGivesTheNumberBack) {
  Json json = gemma2_2b();
  json["query_pre_attn_scalar"] = 144;  // that of 27B
  ArgsFromConfig args = converted_family(json);
  std::erase_if(args.values, [](const auto& arg) { return arg.first == "query_pre_attn_scalar"; });
  const auto back =
      config_from_args(shipped("gemma2"), Arguments(args.values.begin(), args.values.end()));
  ASSERT_TRUE(back);
  EXPECT_EQ(Json::parse(back->json)["query_pre_attn_scalar"], 144);
}

TEST(Gemma2, RefusesLayersAndScalesThatAreNone) {
  Json json = gemma2_2b();
  json["layer_types"] = {"sliding_attention"};
  EXPECT_THAT(family_refusal(json), HasSubstr("layer_types: found 1 entries, expected 26"));
  json = gemma2_2b();
  json["sliding_window_pattern"] = 0;
  EXPECT_THAT(family_refusal(json), HasSubstr("sliding_window_pattern: found 0"));
  json = gemma2_2b();
  json["query_pre_attn_scalar"] = 0;
  EXPECT_THAT(family_refusal(json), HasSubstr("query_pre_attn_scalar: found 0"));
  EXPECT_THAT(refusal_back("gemma2", {{"softmax_scale", ArgValue{-1.0}}}),
              HasSubstr("softmax_scale: found -1"));
  EXPECT_THAT(refusal_back("gemma2", {{"window_attn_skip_freq", ArgValue{std::int64_t{0}}}}),
              HasSubstr("window_attn_skip_freq: found 0"));
}

TEST(Gemma3, BothSpellingsOfItsRotarySettingsAreOne) {
  Json nested = gemma3_1b();
  for (const char* key : {"rope_theta", "rope_local_base_freq", "rope_scaling"}) nested.erase(key);
  nested["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1000000.0}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 10000.0}}}};
  for (const Json& json : {gemma3_1b(), nested}) {
    EXPECT_EQ(argument(json, "rotary_base"), ArgValue{std::int64_t{1000000}});
    EXPECT_TRUE(same_value(argument(json, "rope_local_base_freq"), ArgValue{10000.0}));
    EXPECT_EQ(argument(json, "rotary_seq_len_interpolation_factor"), ArgValue{std::int64_t{8}});
    EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{std::int64_t{6}});
    const Json back = family_and_back(json);
    EXPECT_EQ(back["rope_scaling"], (Json{{"rope_type", "linear"}, {"factor", 8.0}}));
    EXPECT_EQ(back["rope_theta"], 1000000.0);
    EXPECT_EQ(back["rope_local_base_freq"], 10000.0);
  }
}

TEST(Gemma3, SettingsOfTheWholeLayersCountWhateverStandsBeside) {
  Json json = gemma3_1b();
  json["rope_parameters"] = {{"full_attention", {{"rope_theta", 70000.0}}}};
  EXPECT_EQ(argument(json, "rotary_base"), ArgValue{std::int64_t{70000}});
}

// Megatron-LM's arguments always have a factor of Llama 3's scaling.
TEST(Gemma3, IsNotScaledByWhatMegatronLmHasAnyway) {
  Json json = gemma3_1b();
  json.erase("rope_scaling");
  const ArgsFromConfig made = converted_family(json);
  Arguments run(made.values.begin(), made.values.end());
  run["use_rope_scaling"] = false;
  run["rope_scaling_factor"] = 8.0;
  run["rotary_seq_len_interpolation_factor"] = ArgValue{};
  const Json back = Json::parse(config_from_args(shipped("gemma3"), run)->json);
  EXPECT_FALSE(back.contains("rope_scaling"));
}

TEST(Olmo3, SaysTheFrequenciesOfEitherLayer) {
  const Json flat = Json::parse(R"({
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "rope_theta": 5000.0})");
  EXPECT_EQ(argument(flat, "rotary_base"), ArgValue{std::int64_t{5000}});
  Json rope = family_and_back(flat)["rope_parameters"];
  const Json plain = {{"rope_type", "default"}, {"rope_theta", 5000.0}};
  EXPECT_EQ(rope["full_attention"], plain);
  EXPECT_EQ(rope["sliding_attention"], plain) << "which transformers leaves at 500000 otherwise";
  Json scaled = flat;
  scaled["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  rope = family_and_back(scaled)["rope_parameters"];
  EXPECT_EQ(rope["full_attention"]["rope_type"], "yarn");
  EXPECT_EQ(rope["full_attention"]["factor"], 4.0);
  EXPECT_EQ(rope["sliding_attention"], plain);
}

TEST(MiniMaxM2, RotatesThePartThatItsConfigCounts) {
  EXPECT_EQ(argument(minimax_m2(), "rotary_percent"), ArgValue{0.5});
  EXPECT_EQ(argument(minimax_m2(), "moe_router_score_function"), ArgValue{"sigmoid"});
  EXPECT_EQ(argument(minimax_m2(), "moe_ffn_hidden_size"), ArgValue{std::int64_t{1536}});
  EXPECT_EQ(family_and_back(minimax_m2())["rotary_dim"], 64);
  Json json = minimax_m2();
  json.erase("rotary_dim");
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{1.0});
  json["rope_parameters"] = {{"partial_rotary_factor", 0.25}};
  json.erase("rope_theta");
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{0.25});
  json["rotary_dim"] = "64";
  EXPECT_THAT(family_refusal(json), HasSubstr("rotary_dim: found '64'"));
}

TEST(MiniMaxM2, SettingsThatContradictEachOtherAreTold) {
  const auto notes_of = [](const Json& json) {
    const auto config = read_hf_config(json.dump());
    return args_from_hf_config(**find_family(shipped_mappings(), *config), *config)->notes;
  };
  Json json = minimax_m2();
  json.erase("rotary_dim");
  json.erase("rope_theta");
  json["partial_rotary_factor"] = 0.5;
  json["rope_parameters"] = {{"partial_rotary_factor", 0.25}, {"rope_theta", 5000000}};
  const auto told = Contains(
      "config.json says partial_rotary_factor = 0.5 and rope.partial_rotary_factor = 0.25; the "
      "first is taken");
  EXPECT_THAT(notes_of(json), told);
  json["rope_parameters"]["partial_rotary_factor"] = 0.5;
  EXPECT_THAT(notes_of(json), testing::Not(Contains(HasSubstr("the first is taken"))));
}

TEST(Ernie, GivesFirstLastAndIntervalOfTheLayersWithExperts) {
  List frequency(28, 1);
  frequency[0] = 0;
  EXPECT_EQ(argument(ernie_21b(), "moe_layer_freq"), ArgValue{frequency});
  Json json = ernie_21b();
  json.update({{"num_hidden_layers", 6}, {"moe_layer_end_index", 4}, {"moe_layer_interval", 2}});
  EXPECT_EQ(argument(json, "moe_layer_freq"), ArgValue(List{0, 1, 0, 1, 0, 0}));
  const Json again = family_and_back(json);
  EXPECT_EQ(again.value("moe_layer_start_index", -9), 1);
  EXPECT_EQ(again.value("moe_layer_end_index", -9), 3);
  EXPECT_EQ(again.value("moe_layer_interval", -9), 2);
  EXPECT_THAT(refusal_back("ernie4_5_moe", {{"moe_layer_freq", ArgValue{List{1, 0, 0, 1}}},
                                            {"num_experts", ArgValue{std::int64_t{4}}},
                                            {"moe_ffn_hidden_size", ArgValue{std::int64_t{8}}}}),
              HasSubstr("moe_layer_freq = [1, 0, 0, 1], which no config.json of family"));
  const Json back = family_and_back(ernie_21b());
  EXPECT_EQ(back.value("moe_layer_start_index", -9), 1);
  EXPECT_EQ(back.value("moe_layer_end_index", -9), 27);
  EXPECT_EQ(back.value("moe_layer_interval", -9), 1);
}

TEST(Falcon, HasAsManyGroupsAsHeadsWhereItsNewerFormSaysSo) {
  Json json = Json::parse(R"({"architectures": ["FalconForCausalLM"], "model_type": "falcon",
    "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 128,
    "multi_query": true, "new_decoder_architecture": true, "num_kv_heads": 4})");
  EXPECT_EQ(family_and_back(json)["num_kv_heads"], 4);
  json["num_kv_heads"] = 2;
  EXPECT_EQ(family_and_back(json)["num_kv_heads"], 2);
  json["new_decoder_architecture"] = false;
  EXPECT_EQ(family_and_back(json)["num_kv_heads"], 1);
}

// Their classes scale what nothing is said of.
TEST(PlainRope, IsSaidWhereTheClassHasAnotherDefault) {
  for (const char* family : {"apertus", "cwm"}) {
    Json json =
        Json::parse(R"({"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
      "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 128, "rope_theta": 5000.0})");
    json["model_type"] = family;
    json["architectures"] = {shipped(family).architectures[0]};
    EXPECT_EQ(family_and_back(json)["rope_scaling"], Json({{"rope_type", "default"}})) << family;
    json["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 4.0}};
    EXPECT_EQ(family_and_back(json)["rope_scaling"]["rope_type"], "llama3") << family;
  }
}

TEST(Mellum, HasScaledRotaryFrequenciesInLayersWithWholeAttention) {
  Json json = Json::parse(R"({
    "architectures": ["MellumForCausalLM"], "model_type": "mellum", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "vocab_size": 128, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "layer_types": ["full_attention", "sliding_attention"],
    "sliding_window": 16, "rope_parameters": {
      "full_attention": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0,
                         "original_max_position_embeddings": 32},
      "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}})");
  const Json back = family_and_back(json);
  EXPECT_FALSE(back.contains("rope_scaling"));
  EXPECT_FALSE(back.contains("rope_theta"));
  EXPECT_EQ(back["rope_parameters"], json["rope_parameters"]);
  json["rope_parameters"]["full_attention"] = {{"rope_type", "default"}, {"rope_theta", 5000.0}};
  EXPECT_EQ(family_and_back(json)["rope_parameters"], json["rope_parameters"]);
}

TEST(Exaone4, HasAWindowInTheLayersThatItsConfigNames) {
  const Json json = Json::parse(R"({
    "architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "sliding_window": 4096,
    "sliding_window_pattern": "LLLG", "layer_types": ["sliding_attention", "sliding_attention",
    "sliding_attention", "full_attention"]})");
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{std::int64_t{4}});
  Json short_form = json;
  short_form.erase("layer_types");
  EXPECT_THAT(family_refusal(short_form), HasSubstr("sliding_window_pattern: found 'LLLG'"));
  short_form["sliding_window_pattern"] = 4;
  EXPECT_EQ(argument(short_form, "window_attn_skip_freq"), ArgValue{std::int64_t{4}});
}

TEST(Olmo3, HasAWindowInThreeLayersOfFour) {
  const Json json = Json::parse(R"({
    "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 8,
    "num_key_value_heads": 2, "vocab_size": 128, "sliding_window": 4096})");
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{std::int64_t{4}});
}

TEST(Glm, RotatesHalfOfEachHeadWhereNothingSaysHowMuch) {
  Json json = Json::parse(R"({
    "architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4, "head_dim": 16,
    "num_key_value_heads": 2, "vocab_size": 128, "n_routed_experts": 4, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1})");
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{0.5});
  EXPECT_EQ(argument(json, "rotary_interleaved"), ArgValue{false});
  EXPECT_EQ(argument(json, "moe_layer_freq"), ArgValue(List{0, 1, 1, 1}));
  json.update({{"architectures", {"Glm4ForCausalLM"}}, {"model_type", "glm4"}});
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{0.5});
  EXPECT_EQ(argument(json, "rotary_interleaved"), ArgValue{true});
}

TEST(SmolLm3, SaysWhichLayersLackRotaryEmbeddingTheOtherWayRound) {
  const Json json = Json::parse(R"({
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "no_rope_layers": [1, 1, 1, 0]})");
  EXPECT_EQ(argument(json, "no_rope_freq"), ArgValue(List{0, 0, 0, 1}));
  EXPECT_EQ(family_and_back(json)["no_rope_layers"], (Json{1, 1, 1, 0}));
}

TEST(SmolLm3, HasAWindowInTheLayersThatItsConfigNames) {
  Json json = Json::parse(R"({
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "vocab_size": 128, "sliding_window": 7,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"]})");
  EXPECT_EQ(argument(json, "window_size"), ArgValue(List{6, 0}));
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue(List{1, 0, 0}));
  const Json back = family_and_back(json);
  EXPECT_EQ(back["layer_types"], json["layer_types"]);
  EXPECT_EQ(back["sliding_window"], 7);
  EXPECT_EQ(back["use_sliding_window"], true);
  json.erase("layer_types");
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{std::int64_t{1}}) << "all are whole";
  json["use_sliding_window"] = true;
  EXPECT_THAT(converted_family(json).notes, Contains(HasSubstr("use_sliding_window = True")));
  json["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
  EXPECT_THAT(converted_family(json).notes, Not(Contains(HasSubstr("use_sliding_window"))));
  json["sliding_window"] = nullptr;
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{"none of this name"});
  EXPECT_EQ(family_and_back(json)["use_sliding_window"], false);
}

TEST(Olmo, HybridAndJais2TurnAllChannels) {
  for (const char* family : {"jais2", "olmo_hybrid"}) {
    const Mapping mapping = shipped(family);
    for (const ConfigRule& rule : mapping.config) {
      if (rule.args.empty() || rule.args[0] != "rotary_percent") continue;
      EXPECT_TRUE(rule.hf.empty()) << family << ": transformers reads no share";
      EXPECT_TRUE(rule.value && same_value(*rule.value, ArgValue{1.0})) << family;
    }
  }
}

// What config.json says of a run whose arguments say this of layers without rotary embedding.
Result<Json> with_no_rope(const Json& json, std::optional<ArgValue> frequency) {
  const Mapping& mapping = shipped(json["model_type"].get<std::string>());
  const auto made = args_from_hf_config(mapping, *read_hf_config(json.dump()));
  Arguments args(made->values.begin(), made->values.end());
  args.erase("no_rope_freq");
  if (frequency) args["no_rope_freq"] = *frequency;
  auto config = config_from_args(mapping, args);
  if (!config) return std::unexpected(config.error());
  return Json::parse(config->json);
}

TEST(SmolLm3, LayersWithoutRotaryEmbeddingMayBeCounted) {
  const Json json = Json::parse(R"({
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128})");
  const auto layers = [&](std::optional<ArgValue> frequency) {
    return (*with_no_rope(json, std::move(frequency)))["no_rope_layers"];
  };
  EXPECT_EQ(layers(ArgValue{std::int64_t{2}}), (Json{1, 0, 1, 0}));
  EXPECT_EQ(layers(ArgValue{std::int64_t{1}}), (Json{0, 0, 0, 0}));
  EXPECT_EQ(layers(ArgValue{}), (Json{1, 1, 1, 1}));
  EXPECT_EQ(layers(std::nullopt), (Json{1, 1, 1, 1}));
  const auto few = with_no_rope(json, ArgValue{List{0, 1}});
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("no_rope_freq: found 2 entries, expected one for"));
}

TEST(Exaone4, WindowsSayWhichLayersRotate) {
  const Json json = Json::parse(R"({
    "architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "sliding_window": 8,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
                    "full_attention"]})");
  EXPECT_EQ((*with_no_rope(json, ArgValue{std::int64_t{4}}))["layer_types"], json["layer_types"]);
  const auto other = with_no_rope(json, ArgValue{std::int64_t{2}});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("no_rope_freq = 2, which no config.json"));
}

TEST(RotaryShare, IsOnlySaidOfModelsThatReadIt) {
  Json json = Json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "partial_rotary_factor": 0.5})");
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{1.0}) << "transformers passes it over";
  json.update({{"architectures", {"Phi3ForCausalLM"}}, {"model_type", "phi3"}});
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{0.5});
  json.erase("partial_rotary_factor");
  EXPECT_EQ(argument(json, "rotary_percent"), ArgValue{1.0});
}

TEST(Llama4, AnEmptyListOfLayersWithoutRotaryEmbeddingMeansEveryFourth) {
  Json json = Json::parse(R"({
    "architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text", "hidden_size": 64,
    "intermediate_size": 96, "intermediate_size_mlp": 128, "num_attention_heads": 4,
    "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 128,
    "num_local_experts": 4, "num_experts_per_tok": 1, "no_rope_layers": []})");
  EXPECT_EQ(argument(json, "no_rope_freq"), ArgValue(List{0, 0, 0, 1}));
  json.erase("no_rope_layers");
  EXPECT_EQ(argument(json, "no_rope_freq"), ArgValue(List{0, 0, 0, 1}));
}

TEST(SlidingWindow, ThatIsLeftOutIsTheClassesOwn) {
  Json json = Json::parse(R"({
    "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128})");
  EXPECT_EQ(argument(json, "window_size"), ArgValue(List{4095, 0}));
  json["sliding_window"] = nullptr;
  EXPECT_EQ(argument(json, "window_size"), ArgValue());
  // Layers that attend to everything don't rotate, where there is a window.
  json = Json::parse(R"({
    "architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "layer_types": ["sliding_attention",
    "sliding_attention", "sliding_attention", "full_attention"]})");
  EXPECT_EQ(argument(json, "window_size"), ArgValue(List{4095, 0}));
  EXPECT_EQ(argument(json, "no_rope_freq"), ArgValue(List{0, 0, 0, 1}));
}

TEST(GptOss, IsYarnOrElseSaysSo) {
  Json json = Json::parse(R"({
    "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 2880,
    "intermediate_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 2, "head_dim": 64,
    "num_key_value_heads": 8, "vocab_size": 201088, "num_local_experts": 32,
    "experts_per_token": 4, "num_experts_per_tok": 4, "sliding_window": 128,
    "swiglu_limit": 7.0, "rope_theta": 150000,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                     "truncate": false, "original_max_position_embeddings": 4096}})");
  EXPECT_EQ(argument(json, "position_embedding_type"), ArgValue{"yarn"});
  EXPECT_EQ(argument(json, "yarn_correction_range_round_to_int"), ArgValue{false});
  EXPECT_EQ(argument(json, "softmax_type"), ArgValue{"learnable"});
  EXPECT_EQ(argument(json, "window_attn_skip_freq"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(family_and_back(json)["rope_scaling"]["truncate"], false);
  json.erase("rope_scaling");
  EXPECT_THAT(converted_family(json).notes, Contains(HasSubstr("config.json has no rope_param")));
  EXPECT_EQ(argument(json, "position_embedding_type"), ArgValue{"rope"});
  json["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_THAT(converted_family(json).notes, Not(Contains(HasSubstr("rope"))));
}

TEST(GptOss, IsNotYarnWhereTheRunSaysNothingOfIt) {
  const Arguments args{
      {"num_layers", std::int64_t{2}},          {"hidden_size", std::int64_t{64}},
      {"ffn_hidden_size", std::int64_t{32}},    {"moe_ffn_hidden_size", std::int64_t{32}},
      {"num_attention_heads", std::int64_t{4}}, {"num_query_groups", std::int64_t{2}},
      {"kv_channels", std::int64_t{16}},        {"num_experts", std::int64_t{4}},
      {"padded_vocab_size", std::int64_t{128}}};
  const auto plain = config_from_args(shipped("gpt_oss"), args);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(Json::parse(plain->json)["rope_scaling"], Json({{"rope_type", "default"}}))
      << "the class scales where nothing is said";
  EXPECT_THAT(plain->guessed, Contains("rope.type"));
  Arguments scaled = args;
  scaled["position_embedding_type"] = "yarn";
  const auto refused = config_from_args(shipped("gpt_oss"), scaled);
  ASSERT_FALSE(refused) << "transformers does not open it";
  EXPECT_THAT(refused.error().message, HasSubstr("YaRN without its factor"));
  scaled["yarn_rotary_scaling_factor"] = 32.0;
  const auto yarn = config_from_args(shipped("gpt_oss"), scaled);
  ASSERT_TRUE(yarn) << yarn.error().message;
  EXPECT_EQ(Json::parse(yarn->json)["rope_scaling"]["factor"], 32.0);
  for (const char* type : {"default", "llama3", "linear"}) {
    const Json rope = {{"rope_type", type}, {"factor", 4.0}};
    Json json = Json::parse(plain->json);
    json["rope_scaling"] = rope;
    EXPECT_EQ(argument(json, "position_embedding_type"), ArgValue{"rope"}) << type;
    EXPECT_EQ(family_and_back(json)["rope_scaling"]["rope_type"], type);
  }
  scaled.erase("position_embedding_type");
  const auto by_factor = config_from_args(shipped("gpt_oss"), scaled);
  ASSERT_TRUE(by_factor) << by_factor.error().message;
  EXPECT_EQ(Json::parse(by_factor->json)["rope_scaling"]["rope_type"], "yarn");
}

TEST(Mistral4, ReadsTheRotaryShareAtEitherPlace) {
  Json json = Json::parse(R"({
    "architectures": ["Mistral4ForCausalLM"], "model_type": "mistral4", "hidden_size": 64,
    "intermediate_size": 96, "moe_intermediate_size": 32, "num_attention_heads": 4,
    "num_hidden_layers": 2, "num_key_value_heads": 4, "vocab_size": 128, "q_lora_rank": 24,
    "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
    "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 0,
    "partial_rotary_factor": 0.5, "rope_theta": 10000.0})");
  EXPECT_EQ(argument(json, "rope_share_of_head"), ArgValue{0.5});
  json.erase("partial_rotary_factor");
  json["rope_parameters"] = {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}};
  EXPECT_EQ(argument(json, "rope_share_of_head"), ArgValue{0.25});
}

Json small(const std::string& family) {
  Json json = Json::parse(R"({
    "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "vocab_size": 128, "mamba_num_heads": 4, "mamba_head_dim": 32,
    "n_groups": 1, "ssm_state_size": 16, "mamba_n_heads": 4, "mamba_d_head": 32,
    "mamba_n_groups": 1, "mamba_d_state": 16})");
  json["architectures"] = {shipped(family).architectures[0]};
  json["model_type"] = shipped(family).model_types[0];
  return json;
}

// Megatron's MLP that is not gated has squared ReLU or exact GELU.
TEST(SquaredRelu, IsOneOfTwoActivations) {
  for (const auto& [family, key] :
       {std::pair{"nemotron_h", "mlp_hidden_act"}, {"nanochat", "hidden_act"}}) {
    Json json = small(family);
    EXPECT_EQ(argument(json, "squared_relu"), ArgValue{true}) << family;
    json[key] = "relu2";
    EXPECT_EQ(argument(json, "squared_relu"), ArgValue{true}) << family;
    EXPECT_EQ(family_and_back(json)[key], "relu2") << family;
    json[key] = "gelu";
    EXPECT_EQ(argument(json, "squared_relu"), ArgValue{false}) << family;
    EXPECT_EQ(family_and_back(json)[key], "gelu") << family;
    for (const char* other : {"silu", "relu", "quick_gelu", "gelu_pytorch_tanh"}) {
      json[key] = other;
      EXPECT_THAT(converted_family(json).notes,
                  Contains(HasSubstr(fmt::format("{} = '{}' has no counterpart", key, other))))
          << family;
      EXPECT_EQ(argument(json, "squared_relu"), ArgValue{"none of this name"}) << family;
    }
  }
}

TEST(T5, NotesAnActivationThatMegatronLacks) {
  Json json = Json::parse(R"({
    "architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "num_layers": 2,
    "d_model": 64, "d_ff": 96, "num_heads": 4, "d_kv": 16, "vocab_size": 128,
    "tie_word_embeddings": false, "feed_forward_proj": "gated-gelu"})");
  const auto told =
      Contains(HasSubstr("'gated-silu' has no counterpart in Megatron's openai_gelu"));
  EXPECT_THAT(converted_family(json).notes, testing::Not(told));
  EXPECT_EQ(family_and_back(json)["feed_forward_proj"], "gated-gelu");
  json["feed_forward_proj"] = "gated-silu";  // UL2
  EXPECT_THAT(converted_family(json).notes, told);
  EXPECT_EQ(family_and_back(json)["feed_forward_proj"], "gated-silu");
  json["feed_forward_proj"] = "relu";
  EXPECT_EQ(family_and_back(json)["feed_forward_proj"], "relu");
}

// Of the run alone: exact GELU, with a gate where it says so.
TEST(T5, HasTheActivationOfTheRun) {
  Arguments args{{"num_layers", std::int64_t{2}},          {"hidden_size", std::int64_t{64}},
                 {"ffn_hidden_size", std::int64_t{96}},    {"num_attention_heads", std::int64_t{4}},
                 {"padded_vocab_size", std::int64_t{128}}, {"openai_gelu", false},
                 {"kv_channels", std::int64_t{16}}};
  const auto activation = [&] {
    const auto made = config_from_args(shipped("t5"), args);
    return made ? Json::parse(made->json)["feed_forward_proj"] : Json(made.error().message);
  };
  EXPECT_EQ(activation(), "gelu");
  args["gated_linear_unit"] = false;
  EXPECT_EQ(activation(), "gelu");
  args["gated_linear_unit"] = true;
  EXPECT_EQ(activation(), "gated-gelu");
}

TEST(NemotronH, NotesAnotherActivationOfItsMixers) {
  const auto told = Contains(HasSubstr("mamba_hidden_act = 'gelu', where Megatron has 'silu'"));
  Json json = small("nemotron_h");
  EXPECT_THAT(converted_family(json).notes, testing::Not(told));
  EXPECT_EQ(family_and_back(json)["mamba_hidden_act"], "silu");
  json["mamba_hidden_act"] = "gelu";
  EXPECT_THAT(converted_family(json).notes, told);
}

// Megatron's mixer applies the gate first.
TEST(FalconH1, KeepsWhetherNormsComeBeforeGates) {
  constexpr const char* kKey = "mamba_norm_before_gate";
  const auto told = Contains(HasSubstr("mamba_norm_before_gate = True is kept as argument"));
  Json json = small("falcon_h1");
  EXPECT_EQ(family_and_back(json)[kKey], true) << "the class's own";
  EXPECT_THAT(converted_family(json).notes, testing::Not(told)) << "there is no norm";
  json[kKey] = false;
  EXPECT_EQ(family_and_back(json)[kKey], false);
  json["mamba_rms_norm"] = true;
  EXPECT_EQ(family_and_back(json)[kKey], false);
  EXPECT_THAT(converted_family(json).notes, testing::Not(told));
  json[kKey] = true;
  EXPECT_EQ(family_and_back(json)[kKey], true);
  EXPECT_THAT(converted_family(json).notes, told);
  json.erase(kKey);
  EXPECT_THAT(converted_family(json).notes, told);
  ArgsFromConfig run = converted_family(json);
  std::erase_if(run.values, [&](const auto& value) { return value.first == kKey; });
  const auto back =
      config_from_args(shipped("falcon_h1"), Arguments(run.values.begin(), run.values.end()));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(Json::parse(back->json)[kKey], false) << "what Megatron has computed";
}

// Tensors would be another model's, or there would be none of this family.
TEST(Families, NoteWhatNoTensorOfTheirsCanHave) {
  const Json latent = {{"kv_lora_rank", 16},
                       {"qk_nope_head_dim", 16},
                       {"qk_rope_head_dim", 8},
                       {"v_head_dim", 16},
                       {"moe_intermediate_size", 32},
                       {"n_routed_experts", 4},
                       {"num_experts", 4},
                       {"n_shared_experts", 1},
                       {"num_shared_experts", 1},
                       {"first_k_dense_replace", 1},
                       {"num_experts_per_tok", 2},
                       {"enable_moe_block", false},
                       {"full_attention_interval", 2}};
  const auto is_noted = [&](const std::string& family, const char* key, const Json& value) {
    Json json = small(family);
    json.update(latent);
    json[key] = value;
    const auto args = args_from_hf_config(shipped(family), *read_hf_config(json.dump()));
    if (!args) throw std::runtime_error(args.error().message);
    return std::ranges::any_of(args->notes, [&](const std::string& note) {
      return note.starts_with(key) && note.contains("where Megatron has");
    });
  };
  EXPECT_TRUE(is_noted("kimi_linear", "q_lora_rank", 8));
  EXPECT_FALSE(is_noted("kimi_linear", "q_lora_rank", nullptr));
  EXPECT_TRUE(is_noted("deepseek_v2", "mlp_bias", true));
  EXPECT_FALSE(is_noted("deepseek_v2", "mlp_bias", false));
  EXPECT_TRUE(is_noted("gemma4", "attention_bias", true));
  EXPECT_FALSE(is_noted("gemma4", "attention_bias", false));
}

TEST(Granite4, WithoutExpertsHasNoArgumentsOfThem) {
  Json json = Json::parse(R"({
    "architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid",
    "hidden_size": 2048, "intermediate_size": 4096, "shared_intermediate_size": 4096,
    "num_attention_heads": 16, "num_hidden_layers": 40, "num_key_value_heads": 4,
    "num_local_experts": 0, "num_experts_per_tok": 0, "vocab_size": 100352,
    "mamba_n_heads": 48, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128})");
  EXPECT_EQ(argument(json, "num_experts"), ArgValue{});
  EXPECT_EQ(argument(json, "moe_ffn_hidden_size"), ArgValue{});
  const Json back = family_and_back(json);
  EXPECT_EQ(back["num_local_experts"], 0);
  EXPECT_EQ(back["intermediate_size"], 4096);
  json["num_local_experts"] = 62;
  json["intermediate_size"] = 512;
  EXPECT_EQ(argument(json, "num_experts"), ArgValue{std::int64_t{62}});
  EXPECT_EQ(argument(json, "moe_ffn_hidden_size"), ArgValue{std::int64_t{512}});
}

TEST(DeepseekV41, ListsTheLayersThatHaveSourcesOfTheirOwn) {
  const Json json = Json::parse(R"({
    "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "text_config": {
    "hidden_size": 64, "moe_intermediate_size": 32, "num_attention_heads": 4, "vocab_size": 128,
    "num_hidden_layers": 4, "q_lora_rank": 24, "o_groups": 2, "o_lora_rank": 8, "hc_mult": 2,
    "n_routed_experts": 4, "n_shared_experts": 1, "index_n_heads": 2, "index_head_dim": 8,
    "kv_source_layer_ids": [1, 2], "index_source_layer_ids": [1, 2, 3], "engram_layer_ids": [],
    "compress_ratios": [0, 2, 1, 1, 0]}})");
  const Mapping& mapping = shipped("deepseek_v41");
  const HfConfig config = read_hf_config(json.dump()).value();
  const ModelSizes sizes = sizes_from_hf_config(mapping, config).value();
  const auto of_layers = [&](const std::string& size) {
    List numbers;
    for (int layer = 0; layer < 4; ++layer) {
      const auto found = sizes.find(size + "." + std::to_string(layer));
      if (found != sizes.end()) numbers.push_back(found->second);
    }
    return numbers;
  };
  EXPECT_EQ(of_layers("source"), (List{0, 1, 1, 0}));
  EXPECT_EQ(of_layers("chooser"), (List{0, 1, 1, 1}));
  EXPECT_EQ(of_layers("pooled"), (List{0, 1, 0, 0}));
  EXPECT_EQ(sizes.at("split_layers"), 8);
  EXPECT_EQ(argument(json, "num_layers"), ArgValue{std::int64_t{8}});
  EXPECT_EQ(argument(json, "kv_source_layer_ids"), ArgValue(List{1, 2}));
}

// What transformers computes with and Megatron has no place for, or another one.
TEST(Notes, OfSettingsThatTheFamilyHasFixedOrKeptApart) {
  const auto notes_of = [](const std::string& family, const Json& json) {
    return args_from_hf_config(shipped(family), read_hf_config(json.dump()).value())->notes;
  };
  Json mixers = Json::parse(R"({
    "architectures": ["Zamba2ForCausalLM"], "model_type": "zamba2", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128,
    "attention_head_dim": 32, "attention_hidden_size": 128, "adapter_rank": 4, "kv_channels": 16,
    "num_hidden_layers": 2, "num_mem_blocks": 1, "hybrid_layer_ids": [1], "mamba_d_state": 16,
    "layers_block_type": ["linear_attention", "hybrid"], "mamba_headdim": 32, "n_mamba_heads": 4,
    "mamba_ngroups": 1, "mamba_expand": 2, "time_step_min": 0.001})");
  const auto least = Contains(HasSubstr("time_step_min = 0.5 is kept as argument time_step_min"));
  EXPECT_THAT(notes_of("zamba2", mixers), testing::Not(Contains(HasSubstr("time_step_min"))));
  mixers["time_step_min"] = 0.5;
  EXPECT_THAT(notes_of("zamba2", mixers), least);
  Json projector = Json::parse(R"({
    "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
    "multimodal_projector_bias": false, "spatial_merge_size": 2, "text_config": {
    "model_type": "mistral", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 2, "vocab_size": 128},
    "vision_config": {"model_type": "pixtral", "hidden_size": 32, "intermediate_size": 48,
    "num_attention_heads": 2, "num_hidden_layers": 2, "num_channels": 3, "patch_size": 14}})");
  const auto biased = Contains(HasSubstr("multimodal_projector_bias = True, where Megatron has"));
  EXPECT_THAT(notes_of("mistral3", projector), testing::Not(biased));
  projector["multimodal_projector_bias"] = true;
  EXPECT_THAT(notes_of("mistral3", projector), biased);
}

TEST(Laguna, HasTheHeadsOfEachLayer) {
  Json json = Json::parse(R"({
    "architectures": ["LagunaForCausalLM"], "model_type": "laguna", "hidden_size": 64,
    "intermediate_size": 96, "moe_intermediate_size": 32, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 8, "num_hidden_layers": 3, "vocab_size": 128,
    "num_experts": 4, "shared_expert_intermediate_size": 32,
    "num_attention_heads_per_layer": [4, 8, 6]})");
  const Mapping& mapping = shipped("laguna");
  const auto sizes_of = [&]() {
    return sizes_from_hf_config(mapping, read_hf_config(json.dump()).value());
  };
  const ModelSizes sizes = sizes_of().value();
  for (const auto& [layer, heads] : {std::pair(0, 4), std::pair(1, 8), std::pair(2, 6)}) {
    const std::vector<Binding> bindings = {{"layer", layer}};
    EXPECT_EQ((Scope{sizes, bindings}.value_of("layer_heads").value()), heads);
  }
  json["num_attention_heads_per_layer"] = {4, 8};
  EXPECT_EQ(sizes_of().error().code, Code::kConfigMissing);
  json.erase("num_attention_heads_per_layer");
  EXPECT_EQ(sizes_of()->at("layer_heads.2"), 16);
}

TEST(FindFamily, PrefersTheOneThatAsksForMore) {
  Json json = Json::parse(R"({
    "architectures": ["GlmForCausalLM"], "model_type": "glm", "hidden_size": 64,
    "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 1, "head_dim": 16,
    "num_key_value_heads": 2, "vocab_size": 128, "attention_bias": false})");
  const std::vector<TensorDesc> tensors{
      {"embedding.word_embeddings.weight", DType::kBF16, {128, 64}},
      {"decoder.layers.0.self_attention.linear_qkv.layer_norm_weight", DType::kBF16, {64}},
      {"decoder.layers.0.self_attention.linear_qkv.weight", DType::kBF16, {128, 64}},
      {"decoder.layers.0.self_attention.linear_proj.weight", DType::kBF16, {64, 64}},
      {"decoder.layers.0.mlp.linear_fc1.layer_norm_weight", DType::kBF16, {64}},
      {"decoder.layers.0.mlp.linear_fc1.weight", DType::kBF16, {192, 64}},
      {"decoder.layers.0.mlp.linear_fc2.weight", DType::kBF16, {64, 96}},
      {"decoder.final_layernorm.weight", DType::kBF16, {64}},
      {"output_layer.weight", DType::kBF16, {128, 64}}};
  const auto found = [&](const std::string& changed, const ArgValue& value) {
    const ArgsFromConfig args = converted_family(json);
    Arguments values(args.values.begin(), args.values.end());
    values[changed] = value;
    const auto family = find_family(shipped_mappings(), values, tensors);
    return family ? (*family)->family : family.error().message;
  };
  EXPECT_EQ(found("rotary_percent", ArgValue{0.5}), "glm");
  EXPECT_EQ(found("rotary_percent", ArgValue{1.0}), "ernie4_5") << "asks for one argument, not two";
  EXPECT_EQ(found("rotary_interleaved", ArgValue{false}), "llama") << "phi3 is never inferred";
}

}  // namespace
}  // namespace shardwright
