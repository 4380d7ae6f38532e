// SPDX-License-Identifier: Apache-2.0
#include "canonical/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::Contains;
using testing::Pair;

TEST(RunArguments, OfAModelWithComponentsAreThoseOfItsLanguageModel) {
  Checkpoint source;
  source.run_config =
      "model:\n"
      "  num_layers: 9\n"
      "  standard_provider:\n"
      "    num_layers: 2\n"
      "    rope_scaling: true\n";
  const Arguments arguments = run_arguments(source).value();
  EXPECT_THAT(arguments, Contains(Pair("num_layers", ArgValue{std::int64_t{2}})));
  EXPECT_THAT(arguments, Contains(Pair("use_rope_scaling", ArgValue{true})));
}

TEST(TrueVocabulary, IsWhatAProviderSaysBeforePadding) {
  Arguments arguments{{"vocab_size", std::int64_t{500}}};
  EXPECT_EQ(true_vocabulary(arguments), std::nullopt) << "it may be padded already";
  for (const bool pads : {false, true}) {
    arguments.insert_or_assign("should_pad_vocab", pads);
    EXPECT_EQ(true_vocabulary(arguments), 500);
  }
  arguments.insert_or_assign("padded_vocab_size", std::int64_t{512});
  EXPECT_EQ(true_vocabulary(arguments), 500) << "without a tokenizer's name beside it";
  arguments.insert_or_assign("vocab_size", std::monostate());
  EXPECT_EQ(true_vocabulary(arguments), std::nullopt);
}

}  // namespace
}  // namespace shardwright
