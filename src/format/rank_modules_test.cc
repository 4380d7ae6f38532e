// SPDX-License-Identifier: Apache-2.0
#include "format/rank_modules.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

const Arguments kMade = {{"hybrid_layer_pattern", std::string("M*")}};
const Arguments kRunOf016 = {{"micro_batch_size", std::int64_t{1}}};
const Arguments kRunOf017 = {{"micro_batch_size", std::int64_t{1}},
                             {"hybrid_layer_pattern", std::string("M*")},
                             {"mtp_use_repeated_layer", false}};
const Arguments kRunOf019 = {{"micro_batch_size", std::int64_t{1}},
                             {"hybrid_layer_pattern", std::string("M*")},
                             {"mtp_use_repeated_layer", false},
                             {"mtp_detach_heads", false}};

TEST(RankModules, AreCalledAsTheVersionOfTheRunHasThem) {
  const auto prediction = [](const Arguments& arguments) {
    return rank_modules({}, arguments, false, {}).mtp_model_layer;
  };
  EXPECT_FALSE(prediction(kRunOf016));
  EXPECT_TRUE(prediction(kRunOf017));
  EXPECT_TRUE(prediction(kMade)) << "the newest, where there was no run";
  EXPECT_TRUE(prediction({}));
  const auto convolution = [](const Arguments& arguments) {
    return rank_modules({}, arguments, false, {}).plain_convolution;
  };
  EXPECT_FALSE(convolution(kRunOf016));
  EXPECT_FALSE(convolution(kRunOf017));
  EXPECT_TRUE(convolution(kRunOf019));
  EXPECT_TRUE(convolution(kMade));
  EXPECT_FALSE(convolution({})) << "models of before that argument";
}

TEST(RankModules, AreCalledAsInFilesOfRanks) {
  VersionedNames names;
  names.has_mtp_model_layer = names.has_plain_convolution = false;
  const LegacyModules older = rank_modules({}, kRunOf019, false, names);
  EXPECT_FALSE(older.mtp_model_layer);
  EXPECT_FALSE(older.plain_convolution);
  names.has_mtp_model_layer = names.has_plain_convolution = true;
  const LegacyModules newer = rank_modules({}, kRunOf016, false, names);
  EXPECT_TRUE(newer.mtp_model_layer);
  EXPECT_TRUE(newer.plain_convolution);
}

TEST(RankModules, HaveExpertsAsTheArgumentsSayAndElseAsFilesShow) {
  VersionedNames names;
  const auto is_grouped = [&](const Arguments& arguments) {
    return rank_modules({}, arguments, false, names).grouped_experts;
  };
  EXPECT_FALSE(is_grouped({}));
  note_version("decoder.layers.0.mlp.experts.linear_fc1.weight3", names);
  EXPECT_TRUE(is_grouped({}));
  EXPECT_FALSE(is_grouped({{"moe_grouped_gemm", false}}));
  note_version("decoder.layers.0.mlp.experts.local_experts.3.linear_fc1.weight", names);
  EXPECT_FALSE(is_grouped({}));
  EXPECT_TRUE(is_grouped({{"moe_grouped_gemm", true}}));
}

TEST(RankModules, AreWhoseTheNormsShowWhereNoArgumentSays) {
  const auto is_engine = [](const Arguments& arguments, const char* stored) {
    VersionedNames names;
    note_version(stored, names);
    return uses_transformer_engine(arguments, names, {});
  };
  constexpr const char* kFused = "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight";
  EXPECT_TRUE(is_engine({}, kFused));
  EXPECT_TRUE(is_engine({}, "decoder.layers.0.mlp.linear_fc1.layer_norm_weight"));
  EXPECT_FALSE(is_engine({}, "decoder.layers.0.input_layernorm.weight"));
  EXPECT_FALSE(is_engine({{"transformer_impl", std::string("local")}}, kFused));
}

}  // namespace
}  // namespace shardwright
