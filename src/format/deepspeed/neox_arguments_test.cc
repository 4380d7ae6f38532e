// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/neox_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NeoxArguments : public testing::Test {
 protected:
  void configure(const std::string& name, const std::string& text) {
    folder_.put("configs/" + name, text);
  }

  Arguments taken(Arguments arguments) {
    notes_.clear();
    const auto directory = open_local_directory(folder_.path().string()).value();
    EXPECT_TRUE(take_neox_arguments(*directory, arguments, notes_));
    return arguments;
  }

  TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(NeoxArguments, SpeakMegatronsWords) {
  const Arguments arguments = taken({{"model_parallel_size", std::int64_t{2}},
                                     {"pos_emb", std::string("rotary")},
                                     {"rotary_pct", 0.25},
                                     {"norm", std::string("rmsnorm")},
                                     {"rms_norm_epsilon", 1e-6},
                                     {"layernorm_epsilon", 1e-5},
                                     {"no_weight_tying", true},
                                     {"gpt_j_residual", false},
                                     {"activation", std::string("swiglu")}});
  EXPECT_EQ(arguments, (Arguments{{"tensor_model_parallel_size", std::int64_t{2}},
                                  {"position_embedding_type", std::string("rope")},
                                  {"rotary_percent", 0.25},
                                  {"normalization", std::string("RMSNorm")},
                                  {"layernorm_epsilon", 1e-5},
                                  {"norm_epsilon", 1e-6},
                                  {"untie_embeddings_and_output_weights", true},
                                  {"use_parallel_residual", false},
                                  {"swiglu", true}}));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(NeoxArguments, AreInItsConfigurationToo) {
  configure("model.yml",
            "# Pythia\n{\n  \"num-layers\": 2, # both\n  \"norm\": \"layernorm\",\n"
            "  \"pos-emb\": \"rotary\",\n  \"gpt_j_residual\": True,\n}\n");
  configure("local_setup.yml", "{\"data_path\": \"x\", \"no_weight_tying\": true}\n");
  configure("readme.txt", "{ no settings");
  const Arguments arguments = taken({{"num_layers", std::int64_t{3}}});
  EXPECT_EQ(arguments.at("num_layers"), ArgValue{std::int64_t{3}}) << "what is saved with it";
  EXPECT_EQ(arguments.at("use_parallel_residual"), ArgValue{true});
  EXPECT_EQ(arguments.at("untie_embeddings_and_output_weights"), ArgValue{true});
  EXPECT_EQ(arguments.at("position_embedding_type"), ArgValue{std::string("rope")});
  EXPECT_EQ(arguments.at("rotary_percent"), ArgValue{1.0});
  EXPECT_FALSE(arguments.contains("data_path"));
  EXPECT_EQ(taken({{"tokenizer_type", std::string("GPT2BPETokenizer")}}).at("tokenizer_type"),
            ArgValue{std::string("GPT2BPETokenizer")});
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("GPT-NeoX: gpt_j_residual")));
}

TEST_F(NeoxArguments, HaveItsDefaultsWhereItsConfigurationIsThere) {
  EXPECT_FALSE(taken({}).contains("use_parallel_residual"));
  configure("setup.yml", "{\"data_path\": \"x\"}\n");
  EXPECT_FALSE(taken({}).contains("use_parallel_residual")) << "that of no model";
  configure("model.yml", "{\"num_layers\": 2}\n");
  const Arguments arguments = taken({});
  EXPECT_EQ(arguments.at("use_parallel_residual"), ArgValue{false});
  EXPECT_EQ(arguments.at("untie_embeddings_and_output_weights"), ArgValue{false});
  EXPECT_EQ(arguments.at("position_embedding_type"), ArgValue{std::string("learned_absolute")});
  EXPECT_EQ(arguments.at("normalization"), ArgValue{std::string("LayerNorm")});
  EXPECT_FALSE(arguments.contains("rotary_percent")) << "nothing is rotated";
}

TEST_F(NeoxArguments, WithoutACounterpartAreTold) {
  const Arguments arguments = taken({{"pos_emb", std::string("alibi")},
                                     {"norm", std::string("scalenorm")},
                                     {"activation", std::string("geglu")},
                                     {"tokenizer_type", std::string("HFTokenizer")},
                                     {"gpt_j_tied", true},
                                     {"use_qk_layernorm", false}});
  EXPECT_THAT(arguments, IsEmpty());
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("gpt_j_tied, pos_emb: alibi, norm: scalenorm, "
                                            "activation: geglu, tokenizer_type: HFTokenizer")));
}

TEST_F(NeoxArguments, ThatNobodyReadsAreUnknown) {
  configure("model.yml", "{\"num_layers\": 2\n");
  EXPECT_FALSE(taken({}).contains("use_parallel_residual"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("configs/model.yml")));
}

}  // namespace
}  // namespace shardwright
