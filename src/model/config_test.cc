// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/golden_family.h"
#include "model/sample_model.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nlohmann::json llama31() {
  return nlohmann::json::parse(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
    "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 4096,
    "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 131072,
    "mlp_bias": false, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
    "vocab_size": 128256})");
}

Result<HfConfig> config_of(const nlohmann::json& json) { return read_hf_config(json.dump()); }

Arguments args_of(const std::string& family, const nlohmann::json& json) {
  const auto args = args_from_hf_config(shipped(family), *config_of(json));
  if (!args) throw std::runtime_error(args.error().message);
  return Arguments(args->values.begin(), args->values.end());
}

void expect_arg(const Arguments& args, const std::string& name, const ArgValue& value) {
  const auto found = args.find(name);
  ASSERT_NE(found, args.end()) << name;
  EXPECT_TRUE(found->second == value) << name << " = " << to_string(found->second);
}

TEST(Sizes, OfLlamaFillInWhatIsImplied) {
  const auto sizes = sizes_from_hf_config(shipped("llama"), *config_of(llama31()));
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->at("head_dim"), 128);
  EXPECT_EQ(sizes->at("groups"), 8);
  nlohmann::json json = llama31();
  json.erase("num_key_value_heads");
  json["head_dim"] = nullptr;
  const auto fewer = sizes_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->at("groups"), 32) << "one head per group, as in Llama 1";
  EXPECT_EQ(fewer->at("head_dim"), 128);
}

TEST(Sizes, NameTheKeyThatIsMissingOrWrong) {
  struct Case {
    const char* key;
    nlohmann::json value;
    const char* message;
  };
  const std::vector<Case> cases{
      {"num_hidden_layers", nullptr, "num_hidden_layers is missing"},
      {"vocab_size", nullptr, "vocab_size is missing"},
      {"hidden_size", "4096", "hidden_size: found '4096'"},
      {"hidden_size", 4096.0, "hidden_size: found 4096"},
      {"hidden_size", -1, "hidden_size: found -1"},
      {"num_attention_heads", std::int64_t{1} << 60,
       "num_attention_heads: found 1152921504606846976"},
  };
  for (const Case& bad : cases) {
    nlohmann::json json = llama31();
    json[bad.key] = bad.value;
    const auto sizes = sizes_from_hf_config(shipped("llama"), *config_of(json));
    ASSERT_FALSE(sizes) << bad.key;
    EXPECT_EQ(sizes.error().code, Code::kConfigMissing);
    EXPECT_THAT(sizes.error().message, HasSubstr(bad.message));
  }
}

TEST(Sizes, RefuseNamesThatContradictEachOther) {
  const Arguments args{{"num_layers", 2}};
  nlohmann::json json = llama31();
  json["num_local_experts"] = 8;
  json["num_experts"] = 4;
  const auto sizes = sizes_from_hf_config(shipped("mixtral"), *config_of(json));
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Code::kConfigMissing);
  EXPECT_THAT(sizes.error().message, HasSubstr("num_experts: found 4, expected 8 as num_local"));
}

Arguments plain_args() {
  return Arguments{
      {"num_layers", std::int64_t{2}},       {"hidden_size", std::int64_t{64}},
      {"ffn_hidden_size", std::int64_t{96}}, {"num_attention_heads", std::int64_t{4}},
      {"num_query_groups", std::int64_t{1}}, {"group_query_attention", false},
      {"kv_channels", std::int64_t{16}},     {"padded_vocab_size", std::int64_t{512}},
      {"vocab_size", std::int64_t{500}},     {"untie_embeddings_and_output_weights", true}};
}

TEST(Sizes, OfArgumentsFollowMegatronsMeaning) {
  Arguments args = plain_args();
  auto sizes = sizes_from_args(shipped("llama"), args);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->at("groups"), 4) << "query groups do not count without grouped attention";
  EXPECT_EQ(sizes->at("tied"), 0);
  EXPECT_EQ(sizes->at("vocab"), 512) << "real rows must not be lost to a tokenizer's number";
  args["group_query_attention"] = true;
  args["untie_embeddings_and_output_weights"] = false;
  args["kv_channels"] = std::monostate{};
  sizes = sizes_from_args(shipped("llama"), args);
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->at("groups"), 1);
  EXPECT_EQ(sizes->at("tied"), 1);
  EXPECT_EQ(sizes->at("head_dim"), 16);
}

TEST(Sizes, UnderstandTheModelSectionOfBridge) {
  const Arguments args{{"num_layers", std::int64_t{3}},
                       {"hidden_size", std::int64_t{64}},
                       {"ffn_hidden_size", std::int64_t{96}},
                       {"num_attention_heads", std::int64_t{4}},
                       {"num_query_groups", std::int64_t{2}},
                       {"kv_channels", std::int64_t{32}},
                       {"num_moe_experts", std::int64_t{8}},
                       {"moe_ffn_hidden_size", std::int64_t{32}},
                       {"share_embeddings_and_output_weights", true},
                       {"vocab_size", std::int64_t{500}}};
  const auto sizes = sizes_from_args(shipped("qwen3_moe"), args);
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->at("experts"), 8);
  EXPECT_EQ(sizes->at("groups"), 2);
  EXPECT_EQ(sizes->at("tied"), 1);
  EXPECT_EQ(sizes->at("vocab"), 500);
}

TEST(Args, OfLlama31AreWhatMegatronReads) {
  const Arguments args = args_of("llama", llama31());
  const std::vector<std::pair<std::string, ArgValue>> expected{
      {"num_layers", std::int64_t{32}},
      {"hidden_size", std::int64_t{4096}},
      {"ffn_hidden_size", std::int64_t{14336}},
      {"num_attention_heads", std::int64_t{32}},
      {"num_query_groups", std::int64_t{8}},
      {"group_query_attention", true},
      {"kv_channels", std::int64_t{128}},
      {"padded_vocab_size", std::int64_t{128256}},
      {"vocab_size", std::int64_t{128256}},
      {"make_vocab_size_divisible_by", std::int64_t{128}},
      {"max_position_embeddings", std::int64_t{131072}},
      {"seq_length", std::int64_t{131072}},
      {"position_embedding_type", std::string("rope")},
      {"add_position_embedding", true},
      {"rotary_base", std::int64_t{500000}},
      {"rotary_percent", 1.0},
      {"use_rope_scaling", true},
      {"rope_scaling_factor", 8.0},
      {"normalization", std::string("RMSNorm")},
      {"layernorm_epsilon", 1e-05},
      {"swiglu", true},
      {"add_bias_linear", false},
      {"add_qkv_bias", false},
      {"qk_layernorm", false},
      {"untie_embeddings_and_output_weights", true},
      {"num_experts", std::monostate{}},
      {"multi_latent_attention", false},
      {"tokenizer_type", std::string("HuggingFaceTokenizer")},
      {"bf16", true},
      {"fp16", false},
  };
  for (const auto& [name, value] : expected) expect_arg(args, name, value);
  EXPECT_FALSE(args.contains("gdp_num_householder")) << "Megatron's default must apply";
}

TEST(Rope, BothSpellingsGiveTheSameArguments) {
  nlohmann::json newer = llama31();
  newer["rope_parameters"] = newer["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = newer["rope_theta"];
  newer.erase("rope_scaling");
  newer.erase("rope_theta");
  newer["dtype"] = newer["torch_dtype"];
  newer.erase("torch_dtype");
  EXPECT_EQ(args_of("llama", newer), args_of("llama", llama31()));

  nlohmann::json oldest = llama31();
  oldest["rope_scaling"].erase("rope_type");
  oldest["rope_scaling"]["type"] = "llama3";
  EXPECT_EQ(args_of("llama", oldest), args_of("llama", llama31()));
}

TEST(Rope, SpellingsThatDisagreeAreRefused) {
  nlohmann::json json = llama31();
  json["rope_parameters"] = {{"rope_theta", 10000.0}};
  const auto config = config_of(json);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Code::kConfigMissing);
  EXPECT_THAT(config.error().message, HasSubstr("rope_theta = 500000"));
}

TEST(Rope, KindsThatMegatronLacksAreNoted) {
  nlohmann::json json = llama31();
  json["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  const auto args = args_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(args);
  EXPECT_THAT(args->notes, ElementsAre(HasSubstr("rope.factor = 2 is kept as argument rope_dyn")));
  json["rope_scaling"] = {{"rope_type", "longrope"}};
  const auto unknown = args_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(unknown);
  EXPECT_THAT(unknown->notes, ElementsAre(HasSubstr("rope.type = 'longrope' has no counterpart")));
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 2.5}};
  const auto fraction = args_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(fraction);
  EXPECT_THAT(fraction->notes, ElementsAre(HasSubstr("rope.factor = 2.5 is not a whole number")));
  json = llama31();
  json["rope_scaling"]["high_freq_factor"] = 5.0;
  const auto constant = args_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(constant);
  EXPECT_THAT(constant->notes, ElementsAre(HasSubstr("rope.high_freq_factor = 5, where Megatron")));
}

Arguments arguments_of(const nlohmann::json& json) {
  const auto args = args_from_hf_config(shipped("llama"), *config_of(json));
  EXPECT_TRUE(args);
  if (!args) return {};
  return Arguments(args->values.begin(), args->values.end());
}

TEST(Rope, YarnTakesTheModelsOwnPositionsForWhatIsLeftOut) {
  nlohmann::json json = llama31();
  json["max_position_embeddings"] = 131072;
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}};
  Arguments args = arguments_of(json);
  EXPECT_EQ(to_string(args["yarn_original_max_position_embeddings"]), "131072");
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"original_max_position_embeddings", 32768}};
  args = arguments_of(json);
  EXPECT_EQ(to_string(args["yarn_rotary_scaling_factor"]), "4");
  json["original_max_position_embeddings"] = 16384;
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", nullptr}};
  args = arguments_of(json);
  EXPECT_EQ(to_string(args["yarn_original_max_position_embeddings"]), "16384");
  EXPECT_EQ(to_string(args["yarn_rotary_scaling_factor"]), "8");
  EXPECT_FALSE(args.contains("yarn_attention_factor"));
  EXPECT_FALSE(args.contains("yarn_correction_range_round_to_int"));
}

TEST(Rope, YarnsOwnBoundsAreKept) {
  nlohmann::json json = llama31();
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"truncate", false}};
  EXPECT_EQ(arguments_of(json)["yarn_correction_range_round_to_int"], ArgValue{false});
}

TEST(Rope, AnAttentionFactorThatNoMscaleSaysIsKept) {
  nlohmann::json json = llama31();
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 1.0}, {"attention_factor", 1.5}};
  const auto args = args_from_hf_config(shipped("llama"), *config_of(json));
  ASSERT_TRUE(args);
  EXPECT_THAT(args->notes,
              ElementsAre(HasSubstr("rope.attention_factor = 1.5 is kept as argument yarn_att")));
  Arguments values(args->values.begin(), args->values.end());
  EXPECT_EQ(values["yarn_attention_factor"], ArgValue{1.5});
}

/// config.json -> arguments -> config.json must say the same about everything it mentions.
void expect_round_trip(const std::string& family, const nlohmann::json& json) {
  const Arguments args = args_of(family, json);
  const auto text = config_from_args(shipped(family), args);
  ASSERT_TRUE(text) << text.error().message;
  const auto again = read_hf_config(text->json);
  ASSERT_TRUE(again) << again.error().message;
  const auto original = config_of(json);
  for (const auto& [key, value] : again->values) {
    const auto before = original->values.find(key);
    if (before == original->values.end() || key == "model_type") continue;
    EXPECT_TRUE(same_value(before->second, value))
        << key << ": " << to_string(value) << ", was " << to_string(before->second);
  }
  EXPECT_EQ(args_of(family, nlohmann::json::parse(text->json)), args);
}

TEST(Config, ComesBackFromItsArguments) {
  expect_round_trip("llama", llama31());
  nlohmann::json json = llama31();
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  expect_round_trip("llama", json);
  json["rope_scaling"] = {
      {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  expect_round_trip("qwen3", json);
  json["rope_scaling"] = nullptr;
  json["attention_bias"] = true;
  json["mlp_bias"] = true;
  json["tie_word_embeddings"] = true;
  json["torch_dtype"] = "float16";
  expect_round_trip("llama", json);
  json["sliding_window"] = 4096;
  expect_round_trip("mistral", json);
  expect_arg(args_of("mistral", json), "window_size", std::vector<std::int64_t>{4095, 0});
}

TEST(Config, OfYarnHasTheNamesOfEitherMegatron) {
  nlohmann::json json = llama31();
  json["rope_scaling"] = {{"rope_type", "yarn"},
                          {"factor", 4.0},
                          {"original_max_position_embeddings", 32768},
                          {"mscale", 0.75},
                          {"mscale_all_dim", 0.5}};
  Arguments args = args_of("qwen3", json);
  // Megatron-LM has arguments without the prefix since 0.17, and hands those on.
  const std::vector<std::string> names{"rotary_scaling_factor", "mscale", "mscale_all_dim"};
  for (const std::string& name : names) {
    const auto prefixed = args.find("yarn_" + name);
    ASSERT_NE(prefixed, args.end()) << name;
    expect_arg(args, name, prefixed->second);
    args.erase(prefixed);
  }
  const auto text = config_from_args(shipped("qwen3"), args);
  ASSERT_TRUE(text) << text.error().message;
  const nlohmann::json rope = nlohmann::json::parse(text->json)["rope_scaling"];
  EXPECT_EQ(rope["factor"], 4.0);
  EXPECT_EQ(rope["mscale"], 0.75);
  EXPECT_EQ(rope["mscale_all_dim"], 0.5);
}

TEST(Config, HasTheScalingOfPositionsThatTheRunHad) {
  Arguments args = args_of("llama", llama31());
  EXPECT_FALSE(args.contains("rope_scaling_low_freq_factor")) << "no argument of Megatron's";
  args["rope_scaling_low_freq_factor"] = 2.0;
  args["rope_scaling_high_freq_factor"] = 5.0;
  args["rope_scaling_original_max_position_embeddings"] = std::int64_t{4096};
  const auto text = config_from_args(shipped("llama"), args);
  ASSERT_TRUE(text) << text.error().message;
  const nlohmann::json rope = nlohmann::json::parse(text->json)["rope_scaling"];
  EXPECT_EQ(rope["rope_type"], "llama3");
  EXPECT_EQ(rope["factor"], 8.0);
  EXPECT_EQ(rope["low_freq_factor"], 2.0);
  EXPECT_EQ(rope["high_freq_factor"], 5.0);
  EXPECT_EQ(rope["original_max_position_embeddings"], 4096);
}

TEST(Config, IsRefusedWhereTheRunComputedSomethingElse) {
  Arguments args = args_of("llama", llama31());
  args.erase("swiglu");
  args["gated_linear_unit"] = true;
  args["activation_func._target_"] = std::string("torch.nn.functional.gelu");
  const auto refused = config_from_args(shipped("llama"), args);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfigMissing);
  EXPECT_THAT(refused.error().message, HasSubstr("MLPs use gelu"));
  args["activation_func._target_"] = std::string("torch.nn.functional.silu");
  EXPECT_TRUE(config_from_args(shipped("llama"), args));
  args["final_logit_softcapping"] = 30.0;
  const auto capped = config_from_args(shipped("llama"), args);
  ASSERT_FALSE(capped);
  EXPECT_THAT(capped.error().message, HasSubstr("final_logit_softcapping = 30"));
}

TEST(Config, RefusesBiasesThatMegatronCannotTellApart) {
  for (const char* setting : {"attention_bias", "mlp_bias"}) {
    nlohmann::json json = llama31();
    json[setting] = true;
    const auto refused = args_from_hf_config(shipped("llama"), *config_of(json));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kConfigMissing);
    EXPECT_THAT(refused.error().message, HasSubstr(setting));
  }
}

nlohmann::json deepseek() {
  nlohmann::json json = llama31();
  const auto more = nlohmann::json::parse(R"({
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
    "num_hidden_layers": 4, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2, "n_group": 2,
    "topk_group": 1, "routed_scaling_factor": 2.5, "moe_intermediate_size": 32,
    "norm_topk_prob": true, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
    "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 12, "num_nextn_predict_layers": 1, "num_key_value_heads": 32,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
                     "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.5}})");
  json.update(more);
  return json;
}

TEST(Args, OfDeepseekNameItsAttentionAndExperts) {
  const Arguments args = args_of("deepseek_v3", deepseek());
  const std::vector<std::pair<std::string, ArgValue>> expected{
      {"multi_latent_attention", true},
      {"group_query_attention", false},
      {"q_lora_rank", std::int64_t{48}},
      {"kv_lora_rank", std::int64_t{32}},
      {"qk_head_dim", std::int64_t{16}},
      {"qk_pos_emb_head_dim", std::int64_t{8}},
      {"v_head_dim", std::int64_t{12}},
      {"num_experts", std::int64_t{8}},
      {"moe_router_topk", std::int64_t{2}},
      {"moe_ffn_hidden_size", std::int64_t{32}},
      {"moe_shared_expert_intermediate_size", std::int64_t{64}},
      {"moe_layer_freq", std::vector<std::int64_t>{0, 1, 1, 1}},
      {"moe_router_score_function", std::string("sigmoid")},
      {"moe_router_num_groups", std::int64_t{2}},
      {"moe_router_group_topk", std::int64_t{1}},
      {"moe_router_topk_scaling_factor", 2.5},
      {"moe_router_enable_expert_bias", true},
      {"moe_grouped_gemm", true},
      {"mtp_num_layers", std::int64_t{1}},
      {"rope_type", std::string("yarn")},
      {"rotary_scaling_factor", std::int64_t{40}},
      {"mscale", 1.0},
      {"mscale_all_dim", 0.5},
      {"qk_layernorm", true},
  };
  for (const auto& [name, value] : expected) expect_arg(args, name, value);
  EXPECT_FALSE(args.contains("num_query_groups"));
  expect_round_trip("deepseek_v3", deepseek());
  nlohmann::json lite = deepseek();
  lite["q_lora_rank"] = nullptr;
  lite["scoring_func"] = "softmax";
  lite["norm_topk_prob"] = false;
  lite["topk_method"] = "greedy";
  expect_arg(args_of("deepseek_v2", lite), "q_lora_rank", std::monostate{});
  EXPECT_FALSE(args_of("deepseek_v2", lite).contains("moe_router_num_groups"));
  expect_round_trip("deepseek_v2", lite);
  lite["topk_method"] = "group_limited_greedy";
  expect_arg(args_of("deepseek_v2", lite), "moe_router_num_groups", std::int64_t{2});
  expect_round_trip("deepseek_v2", lite);
}

TEST(Args, SayWhichLayersHaveExperts) {
  nlohmann::json json = llama31();
  json.update({{"num_hidden_layers", 6},
               {"num_experts", 8},
               {"moe_intermediate_size", 32},
               {"num_experts_per_tok", 2},
               {"decoder_sparse_step", 1},
               {"mlp_only_layers", nlohmann::json::array()}});
  expect_arg(args_of("qwen3_moe", json), "moe_layer_freq", std::int64_t{1});
  json["decoder_sparse_step"] = 2;
  json["mlp_only_layers"] = {5};
  const Arguments args = args_of("qwen3_moe", json);
  expect_arg(args, "moe_layer_freq", std::vector<std::int64_t>{0, 1, 0, 1, 0, 0});
  const auto text = config_from_args(shipped("qwen3_moe"), args);
  ASSERT_TRUE(text);
  const auto again = nlohmann::json::parse(text->json);
  EXPECT_EQ(again["decoder_sparse_step"], 1);
  EXPECT_EQ(again["mlp_only_layers"], nlohmann::json::parse("[0, 2, 4, 5]"));
}

TEST(Args, SayWhichLayersHaveExpertsAndNoRotaryEmbedding) {
  nlohmann::json json = llama31();
  json.update({{"num_hidden_layers", 4},
               {"num_experts", 8},
               {"num_shared_experts", 1},
               {"moe_intermediate_size", 32},
               {"sliding_window", 16},
               {"is_moe_layer", {false, true, true, false}},
               {"layer_types",
                {"sliding_attention", "full_attention", "sliding_attention", "full_attention"}}});
  const Arguments args = args_of("exaone_moe", json);
  expect_arg(args, "moe_layer_freq", std::vector<std::int64_t>{0, 1, 1, 0});
  expect_arg(args, "window_attn_skip_freq", std::int64_t{2});
  expect_arg(args, "no_rope_freq", std::vector<std::int64_t>{0, 1, 0, 1});
  json["layer_types"] = {"sliding_attention", "full_attention"};
  const auto refused = args_from_hf_config(shipped("exaone_moe"), *config_of(json));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("found 2 entries, expected 4"));
  // Without a window all layers have it, as the models compute.
  json["sliding_window"] = nullptr;
  json["layer_types"] = std::vector<std::string>(4, "full_attention");
  for (const char* family : {"exaone_moe", "exaone4"}) {
    EXPECT_FALSE(args_of(family, json).contains("no_rope_freq")) << family;
  }
}

TEST(Config, ListsWhatItGuessedAndWhatContradictsTheFamily) {
  Arguments args = plain_args();
  args["normalization"] = std::string("LayerNorm");
  const auto config = config_from_args(shipped("llama"), args);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->guessed,
              testing::IsSupersetOf({"vocab_size", "rope.theta", "rms_norm_eps", "torch_dtype"}));
  EXPECT_THAT(config->guessed, testing::Not(testing::Contains("hidden_size")));
  EXPECT_THAT(config->notes, ElementsAre(HasSubstr("normalization = 'LayerNorm', where family")));
  EXPECT_TRUE(config->json.ends_with("}\n"));
}

TEST(ReadHfConfig, RefusesWhatIsNoObject) {
  EXPECT_EQ(read_hf_config("[1]").error().code, Code::kJsonCorrupt);
  EXPECT_EQ(read_hf_config("{\"a\": 1").error().code, Code::kJsonCorrupt);
  EXPECT_EQ(read_hf_config("{\"a\": 1, \"a\": 2}").error().code, Code::kJsonCorrupt);
  const std::string deep = "{\"a\": " + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_EQ(read_hf_config(deep).error().code, Code::kLimit);
  EXPECT_TRUE(read_hf_config(R"({"architectures": "x", "model_type": 3, "l": ["a", 1]})"));
}

TEST(FindFamily, GoesByArchitectureThenByModelType) {
  HfConfig config;
  config.architectures = {"Qwen2ForCausalLM"};
  EXPECT_EQ((*find_family(shipped_mappings(), config))->family, "qwen2");
  config.architectures = {"DeepseekV3ForCausalLM"};
  config.model_type = "kimi_k2";
  EXPECT_EQ((*find_family(shipped_mappings(), config))->family, "deepseek_v3");
  config.architectures.clear();
  config.model_type = "mixtral";
  EXPECT_EQ((*find_family(shipped_mappings(), config))->family, "mixtral");
}

TEST(FindFamily, KnowsAModelWithoutAHead) {
  HfConfig config;
  config.architectures = {"MistralModel"};
  config.model_type = "mistral";
  EXPECT_EQ((*find_family(shipped_mappings(), config))->family, "mistral");
  config.model_type = "bert";
  EXPECT_FALSE(find_family(shipped_mappings(), config));
}

TEST(FindFamily, ListsWhatItKnows) {
  HfConfig config;
  config.architectures = {"Qwen2ForCasualLM"};
  config.model_type = "qwen2";
  const auto unknown = find_family(shipped_mappings(), config);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNoFamily);
  EXPECT_THAT(unknown.error().message, HasSubstr("near to Qwen2ForCausalLM"));
  const auto misspelt = find_family(shipped_mappings(), "lama");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().code, Code::kNoFamily);
  EXPECT_THAT(misspelt.error().message, HasSubstr("did you mean llama?"));
  const auto by_class = find_family(shipped_mappings(), "Qwen3ForCausalLM");
  ASSERT_FALSE(by_class);
  EXPECT_THAT(by_class.error().message, HasSubstr("did you mean qwen3?"));
  const auto by_several = find_family(shipped_mappings(), "AyaVisionForConditionalGeneration");
  ASSERT_FALSE(by_several);
  EXPECT_THAT(by_several.error().message, HasSubstr("did you mean aya_vision, aya_vision_cohere?"));
}

TEST(FindFamily, ReportsSeveralAndNone) {
  std::vector<Mapping> twice = shipped_mappings();
  twice.push_back(shipped("llama"));
  twice.back().family = "llama_too";
  HfConfig config;
  config.architectures = {"LlamaForCausalLM"};
  config.model_type = "llama";
  const auto named = find_family(twice, config);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, Code::kAmbiguousFamily);
  EXPECT_THAT(named.error().message, HasSubstr("llama, llama_too"));

  const GoldenFamily golden = load_golden("llama3");
  const auto args = args_from_hf_config(*golden.mapping, golden.config);
  const Arguments values(args->values.begin(), args->values.end());
  const auto several = find_family(twice, values, golden.canonical);
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, Code::kAmbiguousFamily);
  std::vector<TensorDesc> other = golden.canonical;
  for (TensorDesc& tensor : other) tensor.name = "else." + tensor.name;
  const auto unknown = find_family(twice, values, other);
  EXPECT_EQ(unknown.error().code, Code::kNoFamily);
  EXPECT_THAT(unknown.error().message, HasSubstr("tensors, such as " + other.front().name + " ("));
}

// A tensor under another name, or of another shape: what is near is told, and what is not that.
TEST(FindFamily, NamesTheNearestAndWhatDoesNotFit) {
  const GoldenFamily golden = load_golden("llama3");
  const auto args = args_from_hf_config(*golden.mapping, golden.config);
  const Arguments values(args->values.begin(), args->values.end());
  const auto error_of = [&](std::string_view name, const auto& change) {
    std::vector<TensorDesc> other = golden.canonical;
    change(*std::ranges::find(other, name, &TensorDesc::name));
    const auto found = find_family(shipped_mappings(), values, other);
    return found ? Error{} : found.error();
  };
  const std::string norm = "decoder.layers.1.self_attention.linear_qkv.layer_norm_weight";
  const Error renamed = error_of(norm, [](TensorDesc& tensor) { tensor.name += "s"; });
  EXPECT_EQ(renamed.code, Code::kUnmatchedSource);
  EXPECT_THAT(renamed.message, HasSubstr("nearest is llama, which has no rule for " + norm +
                                         "s and lacks " + norm + "; check"));
  const Error cut = error_of(norm, [](TensorDesc& tensor) { tensor.shape[0] -= 8; });
  EXPECT_EQ(cut.code, Code::kShapeMismatch);
  EXPECT_THAT(cut.message, HasSubstr("nearest is llama: tensor " + norm + " (56,)"));
}

TEST(Config, CountsOptionalLayersByTheTensors) {
  nlohmann::json json = deepseek();
  json["num_nextn_predict_layers"] = 1;
  const Mapping& mapping = shipped("deepseek_v3");
  const auto told = args_from_hf_config(mapping, *config_of(json));
  ASSERT_TRUE(told) << told.error().message;
  const auto value_in = [](const ArgsFromConfig& args) {
    return Arguments(args.values.begin(), args.values.end()).at("mtp_num_layers");
  };
  EXPECT_EQ(value_in(*told), ArgValue{std::int64_t{1}});
  const std::vector<TensorDesc> none = {{"model.embed_tokens.weight", DType::kBF16, {4, 4}}};
  const auto shown = args_from_hf_config(mapping, *config_of(json), none);
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(value_in(*shown), ArgValue{}) << "None: Megatron does not ask for a zero";
  EXPECT_THAT(shown->notes, testing::Contains(HasSubstr("mtp_layers: config.json says 1")));
  json["num_nextn_predict_layers"] = 0;
  EXPECT_EQ(value_in(*args_from_hf_config(mapping, *config_of(json))), ArgValue{});
}

nlohmann::json golden_config(const std::string& folder) {
  return nlohmann::json::parse(read_golden("hf/" + folder + "/hf/config.json"));
}

// Files of before transformers 4.52 have the language model's settings at the top level.
TEST(Sections, AreFilledFromTheTopLevel) {
  nlohmann::json nested = golden_config("qwen25_vl");
  nlohmann::json flat = nested;
  flat.erase("text_config");
  for (const auto& [key, value] : nested["text_config"].items()) flat[key] = value;
  flat["model_type"] = "qwen2_5_vl";
  flat.erase("rope_parameters");
  flat["rope_theta"] = 1000000.0;
  flat["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {2, 3, 3}}};
  const auto sizes = sizes_from_hf_config(shipped("qwen2_5_vl"), *config_of(flat));
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(*sizes, sizes_from_hf_config(shipped("qwen2_5_vl"), *config_of(nested)).value());
  const Arguments args = args_of("qwen2_5_vl", flat);
  EXPECT_EQ(args, args_of("qwen2_5_vl", nested));
  expect_arg(args, "mrope_section", std::vector<std::int64_t>{2, 3, 3});
  expect_arg(args, "position_embedding_type", std::string("mrope"));
  expect_arg(args, "rotary_base", std::int64_t{1000000});
}

TEST(Sections, ThatContradictTheTopLevelAreRefused) {
  nlohmann::json json = golden_config("qwen3_vl");
  json["hidden_size"] = 65;
  const auto sizes = sizes_from_hf_config(shipped("qwen3_vl"), *config_of(json));
  ASSERT_FALSE(sizes);
  EXPECT_EQ(sizes.error().code, Code::kConfigMissing);
  EXPECT_THAT(sizes.error().message, HasSubstr("hidden_size: found 65, expected 64 as "
                                               "text_config.hidden_size says"));
}

TEST(Sections, LeaveItToTheTopLevelWhetherTheHeadIsTied) {
  nlohmann::json json = golden_config("qwen3_vl");
  json["text_config"]["tie_word_embeddings"] = true;  // what transformers 5 writes by default
  EXPECT_EQ(sizes_from_hf_config(shipped("qwen3_vl"), *config_of(json))->at("tied"), 0);
  json.erase("tie_word_embeddings");
  EXPECT_EQ(sizes_from_hf_config(shipped("qwen3_vl"), *config_of(json))->at("tied"), 1);
}

TEST(Args, OfGatedDeltaNetsSayWhichLayersTheyAre) {
  const Arguments args = args_of("qwen3_5_vl", golden_config("qwen35_vl"));
  expect_arg(args, "linear_attention_freq", std::int64_t{4});
  expect_arg(args, "experimental_attention_variant", std::string("gated_delta_net"));
  expect_arg(args, "attention_output_gate", true);
  expect_arg(args, "linear_num_value_heads", std::int64_t{4});
  expect_arg(args, "linear_conv_kernel_dim", std::int64_t{4});
  expect_arg(args, "rotary_percent", 0.25);
  expect_arg(args, "vision_num_attention_heads", std::int64_t{2});
  expect_arg(args, "mtp_num_layers", ArgValue{});
}

TEST(Args, OfHybridModelsSpellTheirBlocks) {
  const Arguments args = args_of("nemotron_h", golden_config("nemotron_h"));
  expect_arg(args, "hybrid_override_pattern", std::string("ME*M"));
  expect_arg(args, "is_hybrid_model", true);
  expect_arg(args, "num_layers", std::int64_t{4});
  expect_arg(args, "mamba_state_dim", std::int64_t{16});
  expect_arg(args, "mamba_num_groups", std::int64_t{2});
  expect_arg(args, "squared_relu", true);
  expect_arg(args, "swiglu", false);
}

// What config.json says of a layer and what its tensors are must be the same.
TEST(Args, RefuseLayerKindsThatTheTensorsContradict) {
  struct Case {
    std::string folder;
    std::string list;
    std::string message;
  };
  const std::vector<Case> cases{
      {"qwen35_vl", R"({"text_config": {"full_attention_interval": 2, "layer_types":
        ["linear_attention", "full_attention", "linear_attention", "full_attention"]}})",
       "found layer 1 to be full_attention by text_config.layer_types, expected what its tensors "
       "show (model.language_model.layers.1.linear_attn.A_log exists)"},
      {"nemotron_h", R"({"layers_block_type": ["mamba", "moe", "mlp", "mamba"]})",
       "found layer 2 to be mlp by layers_block_type, expected what its tensors show"}};
  for (const Case& bad : cases) {
    nlohmann::json json = golden_config(bad.folder);
    json.merge_patch(nlohmann::json::parse(bad.list));
    const GoldenFamily golden = load_golden(bad.folder);
    const auto args = args_from_hf_config(*golden.mapping, *config_of(json), golden.hf);
    ASSERT_FALSE(args) << bad.folder;
    EXPECT_EQ(args.error().code, Code::kConfigMissing);
    EXPECT_THAT(args.error().message, HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace shardwright
