// SPDX-License-Identifier: Apache-2.0
#include "model/unsaid_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/golden_family.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using Whole = std::vector<std::int64_t>;

Status checked(const std::string& family, Arguments args) {
  return check_unsaid_arguments(shipped(family), args);
}

TEST(UnsaidArguments, AreRefused) {
  const Arguments changing = {{"activation_func_clamp_value", 7.0},
                              {"apply_layernorm_1p", true},
                              {"apply_residual_connection_post_layernorm", true},
                              {"attention_output_gate", true},
                              {"alibi_bias_max", std::int64_t{8}},
                              {"attention_chunk_size", std::int64_t{8192}},
                              {"attn_logit_softcapping", 50.0},
                              {"clip_qkv", 8.0},
                              {"embedding_multiplier", 12.0},
                              {"final_logit_softcapping", 30.0},
                              {"glu_linear_offset", 1.0},
                              {"layernorm_zero_centered_gamma", true},
                              {"logit_scale", 0.0625},
                              {"logits_scaling", std::int64_t{8}},
                              {"no_rope_freq", Whole{1, 1, 0}},
                              {"parallel_attn", true},
                              {"qk_l2_norm", true},
                              {"residual_multiplier", 0.5},
                              {"rope_scaling_type", std::string("llama3")},
                              {"rotary_interleaved", true},
                              {"rotary_percent", 0.5},
                              {"softmax_scale", 0.5},
                              {"softmax_type", std::string("off-by-one")},
                              {"swiglu_limits", Whole{0, 7}},
                              {"use_mup", true},
                              {"use_parallel_residual", true},
                              {"window_size", Whole{127, 0}}};
  for (const auto& [name, value] : changing) {
    const Status status = checked("llama", {{name, value}});
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, Code::kConfigMissing) << name;
    EXPECT_THAT(status.error().message, HasSubstr(name + " = "));
  }
}

TEST(UnsaidArguments, AreRotationsOfFamiliesWithoutThem) {
  for (const char* positions : {"rope", "yarn"}) {
    const auto refused =
        checked("nemotron_h", {{"position_embedding_type", std::string(positions)}});
    ASSERT_FALSE(refused) << positions;
    EXPECT_THAT(refused.error().message, HasSubstr("position_embedding_type = "));
    EXPECT_TRUE(checked("llama", {{"position_embedding_type", std::string(positions)}}))
        << positions;
  }
  EXPECT_TRUE(checked("nemotron_h", {{"position_embedding_type", std::string("none")}}));
  EXPECT_TRUE(
      checked("nemotron_h", {{"position_embedding_type", std::string("learned_absolute")}}));
}

TEST(UnsaidArguments, AreFactorsThatNothingTellsMoreOf) {
  EXPECT_FALSE(checked("llama", {{"scale_factor", 8.0}}));
  EXPECT_TRUE(checked("llama", {{"scale_factor", 8.0}, {"use_rope_scaling", true}}));
  EXPECT_TRUE(checked("llava", {{"scale_factor", 8.0}})) << "of pictures";
}

TEST(UnsaidArguments, AreNotThoseThatChangeNothing) {
  const Arguments neutral = {{"activation_func_clamp_value", std::monostate{}},
                             {"attention_output_gate", false},
                             {"embedding_multiplier", 1.0},
                             {"glu_linear_offset", 0.0},
                             {"logits_scaling", 1.0},
                             {"no_rope_freq", Whole{0, 0, 0}},
                             {"residual_multiplier", std::int64_t{1}},
                             {"rotary_percent", std::int64_t{1}},
                             {"softmax_type", std::string("vanilla")},
                             {"window_size", Whole{-1, -1}}};
  for (const auto& [name, value] : neutral) EXPECT_TRUE(checked("llama", {{name, value}})) << name;
  // What attention divides by anyway.
  EXPECT_TRUE(checked("llama", {{"softmax_scale", 0.125}, {"kv_channels", std::int64_t{64}}}));
  EXPECT_FALSE(checked("llama", {{"softmax_scale", 0.126}, {"kv_channels", std::int64_t{64}}}));
}

TEST(UnsaidArguments, AreNotThoseThatTheFamilyReads) {
  EXPECT_TRUE(checked("llama", {{"use_rope_scaling", true}}));
  EXPECT_TRUE(checked("llama", {{"rotary_seq_len_interpolation_factor", std::int64_t{4}}}));
  EXPECT_TRUE(checked("mistral", {{"window_size", Whole{127, 0}}}));
  EXPECT_TRUE(checked("phi3", {{"rotary_percent", 0.75}}));
  EXPECT_FALSE(checked("phi3", {{"use_rope_scaling", true}}))
      << "transformers reads no other scaling";
  EXPECT_FALSE(checked("phi3", {{"rotary_seq_len_interpolation_factor", std::int64_t{4}}}));
  EXPECT_TRUE(checked("gpt2", {{"rotary_percent", 0.5}})) << "it has no rotary embedding";
  EXPECT_TRUE(checked("granite", {{"logits_scaling", 8.0}}));
  EXPECT_TRUE(checked("cohere", {{"logit_scale", 0.0625}}));
  EXPECT_TRUE(checked("gemma", {{"layernorm_zero_centered_gamma", true}}));
  EXPECT_FALSE(checked("deepseek_v3", {{"use_rope_scaling", true}}));
}

TEST(UnsaidArguments, AreThoseThatContradictWhatTheFamilyHas) {
  EXPECT_TRUE(checked("gpt_oss", {{"glu_linear_offset", 1.0}}));
  EXPECT_FALSE(checked("gpt_oss", {{"glu_linear_offset", 0.0}}));
}

TEST(UnsaidArguments, OfExpertsCountWhereThereAreAny) {
  const ArgValue experts = std::int64_t{8};
  const ArgValue factor = 2.5;
  EXPECT_TRUE(checked("llama", {{"moe_router_topk_scaling_factor", factor}}));
  EXPECT_TRUE(
      checked("mixtral", {{"moe_router_topk_scaling_factor", 1.0}, {"num_experts", experts}}));
  EXPECT_FALSE(
      checked("mixtral", {{"moe_router_topk_scaling_factor", factor}, {"num_experts", experts}}));
  EXPECT_TRUE(checked("deepseek_v3",
                      {{"moe_router_topk_scaling_factor", factor}, {"num_moe_experts", experts}}));
}

// The time of a softmax says nothing where scores are no softmax.
TEST(UnsaidArguments, OfRoutersAreWhatTheFamilyHas) {
  const std::string sigmoid = "sigmoid";
  const auto routed = [](const std::string& family, Arguments args) {
    args["num_experts"] = std::int64_t{8};
    return checked(family, std::move(args));
  };
  EXPECT_FALSE(routed("mixtral", {{"moe_router_score_function", sigmoid}}));
  EXPECT_TRUE(routed("mixtral", {{"moe_router_score_function", std::string("softmax")}}));
  EXPECT_TRUE(routed("deepseek_v3", {{"moe_router_score_function", sigmoid}}));
  EXPECT_FALSE(routed("gpt_oss", {{"moe_router_pre_softmax", true}}));
  EXPECT_TRUE(routed("deepseek_v3",
                     {{"moe_router_score_function", sigmoid}, {"moe_router_pre_softmax", false}}));
  EXPECT_FALSE(routed("mixtral", {{"moe_router_topk_limited_devices", std::int64_t{2}}}));
  EXPECT_FALSE(checked("gpt_oss", {{"softmax_type", std::string("vanilla")}}));
}

// Where all layers have the window that config.json says.
TEST(UnsaidArguments, AreLayersWithoutTheWindow) {
  const auto windowed = [](const std::string& family, const ArgValue& frequency) {
    return checked(family, {{"window_size", Whole{127, 0}},
                            {"num_layers", std::int64_t{4}},
                            {"window_attn_skip_freq", frequency}});
  };
  for (const char* family : {"mistral", "mixtral", "phi3"}) {
    EXPECT_FALSE(windowed(family, std::int64_t{2})) << family;
    EXPECT_FALSE(windowed(family, std::int64_t{4})) << family;
    EXPECT_FALSE(windowed(family, Whole{1, 0, 1, 1})) << family;
    EXPECT_TRUE(windowed(family, std::int64_t{5})) << family << ": there is no fifth layer";
    EXPECT_TRUE(windowed(family, Whole{1, 1, 1, 1})) << family;
    EXPECT_TRUE(windowed(family, std::monostate{})) << family;
  }
  EXPECT_TRUE(windowed("ministral", std::int64_t{2}));
  EXPECT_TRUE(windowed("smollm3", std::int64_t{2}));
  EXPECT_TRUE(checked("llama", {{"window_attn_skip_freq", std::int64_t{2}}})) << "nothing has one";
  EXPECT_TRUE(checked(
      "mistral", {{"window_attn_skip_freq", std::int64_t{2}}, {"window_size", Whole{-1, -1}}}));
}

TEST(UnsaidArguments, AreRotationsOfAnIndexer) {
  EXPECT_FALSE(checked("deepseek_v32", {{"dsa_indexer_rope_interleaved", true}}));
  EXPECT_FALSE(checked("glm_moe_dsa", {{"dsa_indexer_rope_interleaved", false}}));
  EXPECT_TRUE(checked("glm_moe_dsa", {{"dsa_indexer_rope_interleaved", true}}));
  EXPECT_TRUE(checked("llama", {{"dsa_indexer_rope_interleaved", true}})) << "it has no indexer";
}

}  // namespace
}  // namespace shardwright
