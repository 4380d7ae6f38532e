// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/megatron_arguments.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

using Whole = std::vector<std::int64_t>;

Arguments taken(Arguments arguments) {
  take_megatron_deepspeed_arguments(arguments);
  return arguments;
}

TEST(MegatronDeepSpeedArguments, SpeakMegatronCoresWords) {
  const Arguments arguments = taken({{"num_attention_heads", std::int64_t{8}},
                                     {"num_key_value_heads", std::int64_t{2}},
                                     {"rope_theta", std::int64_t{500000}},
                                     {"use_rotary_position_embeddings", true},
                                     {"add_position_embedding", false},
                                     {"normalization", std::string("rmsnorm")},
                                     {"num_experts", Whole{1}}});
  EXPECT_EQ(arguments, (Arguments{{"num_attention_heads", std::int64_t{8}},
                                  {"num_query_groups", std::int64_t{2}},
                                  {"group_query_attention", true},
                                  {"rotary_base", std::int64_t{500000}},
                                  {"use_rotary_position_embeddings", true},
                                  {"position_embedding_type", std::string("rope")},
                                  {"normalization", std::string("RMSNorm")},
                                  {"num_experts", std::monostate{}}}));
  EXPECT_EQ(taken({{"normalization", std::string("layernorm")}}).at("normalization"),
            ArgValue{std::string("LayerNorm")});
}

TEST(MegatronDeepSpeedArguments, WithAsManyKeysAsHeadsShareNone) {
  const Arguments arguments =
      taken({{"num_attention_heads", std::int64_t{8}}, {"num_key_value_heads", std::int64_t{8}}});
  EXPECT_EQ(arguments.at("group_query_attention"), ArgValue{false});
}

TEST(MegatronDeepSpeedArguments, InMegatronCoresWordsStay) {
  const Arguments core = {{"num_attention_heads", std::int64_t{8}},
                          {"num_query_groups", std::int64_t{2}},
                          {"group_query_attention", true},
                          {"rotary_base", std::int64_t{10000}},
                          {"position_embedding_type", std::string("learned_absolute")},
                          {"add_position_embedding", true},
                          {"normalization", std::string("RMSNorm")},
                          {"num_experts", std::int64_t{8}}};
  EXPECT_EQ(taken(core), core);
}

TEST(MegatronDeepSpeedArguments, OfExpertsAreNoMlp) {
  EXPECT_EQ(taken({{"num_experts", Whole{4, 4}}}).at("num_experts"), (ArgValue{Whole{4, 4}}));
}

TEST(MegatronDeepSpeedArguments, WithoutRotaryEmbeddingHaveNoBase) {
  const Arguments learned = {{"use_rotary_position_embeddings", false},
                             {"rope_theta", std::int64_t{10000}},
                             {"add_position_embedding", true}};
  EXPECT_EQ(taken(learned), learned);
}

}  // namespace
}  // namespace shardwright
