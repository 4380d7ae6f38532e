// SPDX-License-Identifier: Apache-2.0
#include "state/provider_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "state/run_config.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

Arguments arguments_of(const std::string& model) {
  return read_run_config("model:\n" + model).value();
}

TEST(ProviderArguments, SayHowPositionsAreScaled) {
  const Arguments arguments = arguments_of(
      "  rope_scaling: true\n"
      "  rope_scaling_factor: 32.0\n"
      "  seq_len_interpolation_factor: 4\n");
  EXPECT_THAT(arguments, Contains(Pair("use_rope_scaling", ArgValue{true})));
  EXPECT_THAT(arguments, Contains(Pair("rope_scaling_factor", ArgValue{32.0})));
  EXPECT_THAT(arguments,
              Contains(Pair("rotary_seq_len_interpolation_factor", ArgValue{std::int64_t{4}})));
}

TEST(ProviderArguments, AreNotMadeOfWhatIsNotSet) {
  const Arguments arguments = arguments_of("  seq_len_interpolation_factor: null\n  a: 1\n");
  EXPECT_THAT(arguments, Not(Contains(Key("rotary_seq_len_interpolation_factor"))));
  EXPECT_THAT(arguments, Not(Contains(Key("use_rope_scaling"))));
}

TEST(ProviderArguments, LeaveOnesThatAreThere) {
  const Arguments arguments = arguments_of("  rope_scaling: true\n  use_rope_scaling: false\n");
  EXPECT_THAT(arguments, Contains(Pair("use_rope_scaling", ArgValue{false})));
}

TEST(ProviderArguments, KnowTheScalingOfNemosLlama31) {
  Arguments settings = {{"scale_factor", 32.0},
                        {"low_freq_factor", 2.0},
                        {"high_freq_factor", 5.0},
                        {"old_context_len", std::int64_t{4096}}};
  add_arguments_of_provider(settings);
  EXPECT_THAT(settings, Contains(Pair("use_rope_scaling", ArgValue{true})));
  EXPECT_THAT(settings, Contains(Pair("rope_scaling_factor", ArgValue{32.0})));
  EXPECT_THAT(settings, Contains(Pair("rope_scaling_low_freq_factor", ArgValue{2.0})));
  EXPECT_THAT(settings, Contains(Pair("rope_scaling_high_freq_factor", ArgValue{5.0})));
  EXPECT_THAT(settings, Contains(Pair("rope_scaling_original_max_position_embeddings",
                                      ArgValue{std::int64_t{4096}})));
  Arguments part = {{"scale_factor", 32.0}, {"low_freq_factor", 2.0}};
  add_arguments_of_provider(part);
  EXPECT_THAT(part, Contains(Pair("use_rope_scaling", ArgValue{true})));
  EXPECT_THAT(part, Contains(Pair("rope_scaling_factor", ArgValue{32.0})));
  Arguments none = {{"old_context_len", ArgValue{}}};
  add_arguments_of_provider(none);
  EXPECT_THAT(none, Not(Contains(Key("use_rope_scaling"))));
  Arguments others = {{"scale_factor", 32.0}};  // which means something else elsewhere
  add_arguments_of_provider(others);
  EXPECT_EQ(others.size(), 1U);
}

TEST(ProviderArguments, KnowTheScalingOfGemma3) {
  const std::string gemma =
      "  _target_: megatron.bridge.models.gemma.gemma3_provider.Gemma3ModelProvider12B\n";
  const auto scaled = Key("rotary_seq_len_interpolation_factor");
  EXPECT_THAT(arguments_of(gemma + "  rope_scaling_factor: 8.0\n"),
              Contains(Pair("rotary_seq_len_interpolation_factor", ArgValue{8.0})));
  EXPECT_THAT(arguments_of(gemma + "  rope_scaling_factor: 1.0\n"), Not(Contains(scaled)));
  EXPECT_THAT(arguments_of("  _target_: a.GPTModelProvider\n  rope_scaling_factor: 8.0\n"),
              Not(Contains(scaled)));
}

TEST(ProviderArguments, KnowFunctionsThatAreFlags) {
  const auto with = [](const std::string& function) {
    return arguments_of("  activation_func:\n    _call_: false\n    _target_: " + function + "\n");
  };
  EXPECT_THAT(with("megatron.core.activations.squared_relu"),
              Contains(Pair("squared_relu", ArgValue{true})));
  EXPECT_THAT(with("megatron.core.activations.fast_gelu"),
              Contains(Pair("openai_gelu", ArgValue{true})));
  EXPECT_EQ(with("torch.nn.functional.silu").size(), 2U);
}

}  // namespace
}  // namespace shardwright
