// SPDX-License-Identifier: Apache-2.0
#include "model/activation.h"

#include <gtest/gtest.h>

#include <string>

#include "model/golden_family.h"

namespace shardwright {
namespace {

TEST(Activation, OfARunIsItsFlag) {
  for (const auto& [flag, expected] : {std::pair{"swiglu", "silu"},
                                       {"squared_relu", "relu2"},
                                       {"quick_geglu", "quick_gelu"},
                                       {"geglu", "gelu"},
                                       {"reglu", "relu"}}) {
    EXPECT_EQ(activation_of_run({{flag, true}}), expected) << flag;
    EXPECT_EQ(activation_of_run({{flag, false}}), std::nullopt) << flag;
  }
}

TEST(Activation, OfARunIsTheFunctionOfItsConfiguration) {
  for (const auto& [function, expected] :
       {std::pair{"torch.nn.functional.silu", "silu"},
        {"torch._C._nn.gelu", "gelu"},
        {"megatron.core.activations.squared_relu", "relu2"},
        {"megatron.core.activations.fast_gelu", "gelu"},
        {"megatron.core.fusions.fused_bias_geglu.quick_gelu", "quick_gelu"}}) {
    const Arguments args = {{"activation_func._target_", std::string(function)},
                            {"gated_linear_unit", true}};
    EXPECT_EQ(activation_of_run(args), expected) << function;
  }
  EXPECT_EQ(activation_of_run({{"activation_func._target_", std::string("my.own.act")}}),
            std::nullopt);
}

TEST(Activation, OfARunIsNemosWord) {
  EXPECT_EQ(activation_of_run({{"activation", std::string("gelu")}}), "gelu");
  EXPECT_EQ(activation_of_run({{"activation", std::string("fast-swiglu")}, {"swiglu", true}}),
            "silu");
}

TEST(Activation, OfAConfigIsItsKey) {
  const Mapping& llama = shipped("llama");
  EXPECT_EQ(activation_of_config(llama, {{"hidden_act", std::string("silu")}}), "silu");
  EXPECT_EQ(activation_of_config(llama, {{"hidden_activation", std::string("gelu_pytorch_tanh")}}),
            "gelu");
  EXPECT_EQ(activation_of_config(llama, {{"mlp_hidden_act", std::string("relu2")}}), "relu2");
  EXPECT_EQ(activation_of_config(llama, {{"hidden_act", std::string("xielu")}}), std::nullopt);
  EXPECT_EQ(activation_of_config(llama, {}), std::nullopt);
}

TEST(Activation, OfAConfigWithAScaledGateIsNotWhatItSays) {
  EXPECT_EQ(activation_of_config(shipped("gpt_oss"), {{"hidden_act", std::string("silu")}}),
            "quick_gelu");
}

}  // namespace
}  // namespace shardwright
