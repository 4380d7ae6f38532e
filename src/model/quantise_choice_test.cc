// SPDX-License-Identifier: Apache-2.0
#include "model/quantise_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace shardwright {
namespace {

using ::testing::HasSubstr;

Result<QuantiseChoice> chosen(const nlohmann::json& config) {
  return choose_quantisation(Quantising::Scheme::kFp8, false, config.dump(), {});
}

TEST(QuantiseChoice, ModelsThatAreNotLoadedSoAreRefused) {
  for (const char* type : {"gpt2", "llama4", "megatron-bert", "qwen3_vl_moe", "step3p7"}) {
    const auto refused = chosen({{"model_type", type}});
    ASSERT_FALSE(refused) << type;
    EXPECT_EQ(refused.error().code, Code::kUnsupportedFormat);
    EXPECT_THAT(refused.error().message, HasSubstr("leave --quantise out")) << type;
  }
  EXPECT_TRUE(chosen({{"model_type", "llama"}}));
}

// What was released so is loaded so.
TEST(QuantiseChoice, AModelThatIsQuantisedSoStaysSo) {
  const nlohmann::json own = {{"activation_scheme", "dynamic"},
                              {"fmt", "e4m3"},
                              {"quant_method", "fp8"},
                              {"weight_block_size", {128, 128}}};
  EXPECT_TRUE(chosen({{"model_type", "qwen3_vl_moe"}, {"quantization_config", own}}));
}

}  // namespace
}  // namespace shardwright
