// SPDX-License-Identifier: Apache-2.0
#include "model/computed_otherwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/golden_family.h"

namespace shardwright {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// What is noted of a small model with these settings beside those that every one has.
std::vector<std::string> notes_of(const std::string& family, const Json& settings) {
  Json json = {
      {"hidden_size", 64},        {"intermediate_size", 96}, {"num_attention_heads", 4},
      {"num_key_value_heads", 2}, {"num_hidden_layers", 4},  {"vocab_size", 128},
      {"head_dim", 16},           {"rope_theta", 5000.0},    {"max_position_embeddings", 64}};
  json.update(settings);
  const Mapping mapping = shipped(family);
  json["architectures"] = {mapping.architectures[0]};
  json["model_type"] = mapping.model_types[0];
  const auto config = read_hf_config(json.dump());
  if (!config) throw std::runtime_error(config.error().message);
  const auto args = args_from_hf_config(mapping, *config);
  if (!args) throw std::runtime_error(args.error().message);
  return args->notes;
}

const Json kYarn = {
    {"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};

Json with(Json json, const Json& more) {
  json.update(more);
  return json;
}

TEST(ComputedOtherwise, YarnOfAPartOfAHead) {
  const auto told = Contains(HasSubstr("where Megatron-Core's turns all of them"));
  const Json scaled = {{"rope_scaling", kYarn}};
  EXPECT_THAT(notes_of("glm4", with({{"partial_rotary_factor", 0.5}}, scaled)), told);
  EXPECT_THAT(notes_of("glm4", {{"partial_rotary_factor", 0.5}}), Not(told));
  EXPECT_THAT(notes_of("qwen3", scaled), Not(told));
}

TEST(ComputedOtherwise, ScaledFrequenciesThatTheArgumentsDoNotSay) {
  const auto told = Contains(HasSubstr("rotary frequencies are scaled as rope.type = yarn says"));
  EXPECT_THAT(notes_of("falcon", with({{"multi_query", true}}, {{"rope_scaling", kYarn}})), told);
  EXPECT_THAT(notes_of("falcon", {{"multi_query", true}}), Not(told));
  EXPECT_THAT(notes_of("qwen3", {{"rope_scaling", kYarn}}), Not(told));
}

TEST(ComputedOtherwise, TypesOfRotaryEmbeddingThatNoRuleReads) {
  const auto told = Contains(HasSubstr("frequencies are scaled as rope.type = longrope says"));
  const Json rope = {{"rope_scaling", {{"rope_type", "longrope"}, {"factor", 4.0}}}};
  const Json falcon = with({{"multi_query", true}}, rope);
  EXPECT_THAT(notes_of("falcon", falcon), told);
  EXPECT_THAT(notes_of("falcon", with(falcon, {{"alibi", true}})), Not(told)) << "nothing turns";
  const Json granite = with({{"shared_intermediate_size", 96},
                             {"num_local_experts", 0},
                             {"mamba_n_heads", 4},
                             {"mamba_d_head", 32},
                             {"mamba_n_groups", 1},
                             {"mamba_d_state", 16}},
                            rope);
  EXPECT_THAT(notes_of("granitemoehybrid", with(granite, {{"position_embedding_type", "rope"}})),
              told);
  EXPECT_THAT(notes_of("granitemoehybrid", granite), Not(told));
  EXPECT_THAT(notes_of("qwen3", rope), Not(told));
  EXPECT_THAT(notes_of("qwen3", rope), Contains(HasSubstr("'longrope' has no counterpart")));
  for (const char* type : {"linear", "dynamic", "llama3", "default"}) {
    const Json read = {{"multi_query", true},
                       {"rope_scaling", {{"rope_type", type}, {"factor", 4.0}}}};
    EXPECT_THAT(notes_of("falcon", read), Not(Contains(HasSubstr("are scaled as")))) << type;
  }
}

TEST(ComputedOtherwise, FrequenciesOfLayersWithAWindow) {
  const auto type = Contains(HasSubstr("rope.sliding_attention.rope_type = linear"));
  const auto theta = Contains(HasSubstr("rope.sliding_attention.rope_theta = 100"));
  const Json whole = {{"rope_type", "default"}, {"rope_theta", 5000.0}};
  const auto of_window = [&](const Json& window) {
    return Json{{"rope_parameters", {{"full_attention", whole}, {"sliding_attention", window}}}};
  };
  EXPECT_THAT(notes_of("olmo3", of_window(whole)), Not(Contains(HasSubstr("sliding_attention"))));
  const Json linear = {{"rope_type", "linear"}, {"rope_theta", 5000.0}, {"factor", 4.0}};
  EXPECT_THAT(notes_of("olmo3", of_window(linear)), type);
  EXPECT_THAT(notes_of("olmo3", of_window({{"rope_type", "default"}, {"rope_theta", 100.0}})),
              theta);
}

TEST(ComputedOtherwise, LayersWithAWindowThatAreNotScaled) {
  const auto told = Contains(HasSubstr("layers with a sliding window are not scaled as rope.type"));
  const Json linear = {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  EXPECT_THAT(notes_of("gemma3", linear), told);
  EXPECT_THAT(notes_of("gemma3", Json::object()), Not(told));
  EXPECT_THAT(notes_of("qwen3", linear), Not(told))
      << "its windows have no frequencies of their own";
  const Json both = {{"rope_type", "linear"}, {"rope_theta", 5000.0}, {"factor", 8.0}};
  EXPECT_THAT(notes_of("gemma3", {{"rope_parameters",
                                   {{"full_attention", both}, {"sliding_attention", both}}}}),
              Not(told));
}

TEST(ComputedOtherwise, YarnOfChannelsInPairs) {
  const auto told = Contains(HasSubstr("Megatron-Core builds no model with both"));
  EXPECT_THAT(notes_of("helium", {{"rope_scaling", kYarn}}), told);
  EXPECT_THAT(notes_of("helium", Json::object()), Not(told));
  EXPECT_THAT(notes_of("qwen3", {{"rope_scaling", kYarn}}), Not(told));
}

TEST(ComputedOtherwise, SettingsOfALanguageModelBesideATower) {
  const Json text = {{"hidden_size", 64},
                     {"intermediate_size", 96},
                     {"num_attention_heads", 4},
                     {"num_key_value_heads", 2},
                     {"num_hidden_layers", 4},
                     {"vocab_size", 128},
                     {"head_dim", 16},
                     {"rope_theta", 5000.0},
                     {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  EXPECT_THAT(notes_of("gemma3_vl", {{"text_config", text},
                                     {"vision_config",
                                      {{"hidden_size", 32},
                                       {"intermediate_size", 48},
                                       {"num_hidden_layers", 2},
                                       {"num_attention_heads", 2},
                                       {"image_size", 28},
                                       {"patch_size", 14}}}}),
              Contains(HasSubstr("are not scaled as rope.type = linear")));
}

const Json kDelta = {{"linear_num_key_heads", 2},
                     {"linear_num_value_heads", 4},
                     {"linear_key_head_dim", 8},
                     {"linear_value_head_dim", 8},
                     {"linear_conv_kernel_dim", 4},
                     {"num_experts", 4},
                     {"num_experts_per_tok", 2},
                     {"moe_intermediate_size", 32},
                     {"shared_expert_intermediate_size", 32}};

TEST(ComputedOtherwise, ChannelsOfPicturesThatTakeTurns) {
  const auto told = Contains(HasSubstr("mrope_interleaved"));
  Json rope = {{"rope_type", "default"}, {"mrope_section", {4, 2, 2}}};
  EXPECT_THAT(notes_of("qwen3_next", with(kDelta, {{"rope_scaling", rope}})), Not(told));
  rope["mrope_interleaved"] = true;
  EXPECT_THAT(notes_of("qwen3_next", with(kDelta, {{"rope_scaling", rope}})), told);
}

TEST(ComputedOtherwise, GroupsOfExpertsByOtherSums) {
  const auto told = Contains(HasSubstr("groups of experts are chosen by their best"));
  const Json v2 = {{"q_lora_rank", 24},
                   {"kv_lora_rank", 16},
                   {"qk_nope_head_dim", 16},
                   {"qk_rope_head_dim", 8},
                   {"v_head_dim", 16},
                   {"n_routed_experts", 16},
                   {"n_shared_experts", 1},
                   {"moe_intermediate_size", 32},
                   {"first_k_dense_replace", 1},
                   {"n_group", 8},
                   {"topk_group", 3},
                   {"topk_method", "group_limited_greedy"},
                   {"num_experts_per_tok", 6}};
  EXPECT_THAT(notes_of("deepseek_v2", v2), told);
  EXPECT_THAT(notes_of("deepseek_v2", with(v2, {{"num_experts_per_tok", 3}})), Not(told));
  const Json v3 =
      with(v2, {{"topk_method", "noaux_tc"}, {"topk_group", 4}, {"num_experts_per_tok", 8}});
  EXPECT_THAT(notes_of("deepseek_v3", v3), Not(told));
  EXPECT_THAT(notes_of("deepseek_v3", with(v3, {{"num_experts_per_tok", 4}})), told);
  EXPECT_THAT(notes_of("deepseek_v3", with(v3, {{"topk_group", 8}, {"num_experts_per_tok", 4}})),
              Not(told));
}

const Json kLatent = {{"q_lora_rank", 24},          {"kv_lora_rank", 16},
                      {"qk_nope_head_dim", 16},     {"qk_rope_head_dim", 8},
                      {"v_head_dim", 16},           {"n_routed_experts", 16},
                      {"n_shared_experts", 1},      {"moe_intermediate_size", 32},
                      {"first_k_dense_replace", 1}, {"num_experts_per_tok", 2}};

TEST(ComputedOtherwise, QueriesThatAreNotCompressed) {
  const auto told = Contains(HasSubstr("self_attention.linear_q_proj.layer_norm_weight"));
  EXPECT_THAT(notes_of("deepseek_v2", with(kLatent, {{"q_lora_rank", nullptr}})), told);
  EXPECT_THAT(notes_of("deepseek_v2", kLatent), Not(told));
  EXPECT_THAT(notes_of("qwen3", Json::object()), Not(told));
}

TEST(ComputedOtherwise, NormsOfLatentAttention) {
  const auto told = Contains(HasSubstr("have an epsilon of 1e-06"));
  EXPECT_THAT(notes_of("deepseek_v3", with(kLatent, {{"rms_norm_eps", 1e-5}})), told);
  EXPECT_THAT(notes_of("deepseek_v3", with(kLatent, {{"rms_norm_eps", 1e-6}})), Not(told));
  EXPECT_THAT(notes_of("glm4_moe_lite", kLatent), told) << "by its class's default";
  EXPECT_THAT(notes_of("qwen3", {{"rms_norm_eps", 1e-5}}), Not(told));
  EXPECT_FALSE(shipped("glm5_next").latent_epsilon);
  EXPECT_TRUE(shipped("kimi_linear").latent_epsilon);
}

TEST(ComputedOtherwise, IsToldOfARunToo) {
  const Arguments latent = {{"multi_latent_attention", true}, {"layernorm_epsilon", 1e-5}};
  EXPECT_THAT(run_computed_otherwise(shipped("deepseek_v3"), {}, latent),
              Contains(HasSubstr("takes the model's, 1e-05")));
  EXPECT_TRUE(
      run_computed_otherwise(shipped("deepseek_v3"), {},
                             {{"multi_latent_attention", true}, {"layernorm_epsilon", 1e-6}})
          .empty());
  EXPECT_TRUE(run_computed_otherwise(shipped("glm5_next"), {}, latent).empty());
}

}  // namespace
}  // namespace shardwright
