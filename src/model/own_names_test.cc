// SPDX-License-Identifier: Apache-2.0
#include "model/own_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kOwn = R"({
  "about": "of the test", "names": "own", "families": ["llama"],
  "layers": [{"stored": "layers.{layer}.", "megatron": "decoder.layers.{layer}."},
             {"stored": "mtp.{layer}.", "megatron": "mtp.layers.{layer}."}],
  "of_layer": [
    {"stored": ["fc1.weight{expert}"], "megatron": "experts.weight", "stack": "expert", "rows": "rank_parts"},
    {"stored": ["scale", "scales"], "megatron": ["a", "b"], "extents": ["heads", "2 * heads"]}
  ],
  "rules": [{"stored": ["norm"], "megatron": "final"}],
  "buffers": [{"hf": "model.{layer}.bias", "megatron": "decoder.layers.{layer}.bias"}],
  "ignore": ["copy"]
})";

TEST(OwnNames, ApplyTheRulesOfALayerAtEachPlace) {
  const OwnNames own = parse_own_names(kOwn, "own.json").value();
  ASSERT_EQ(own.rules.size(), 5U);
  const ModelSizes sizes{{"heads", 3}};
  const auto named = [&](std::string_view stored) {
    const OwnNameRule* rule = own.find(stored);
    if (rule == nullptr) return std::string();
    const auto numbers = *rule->match(stored);
    return rule->megatron.back().render(Scope{sizes, numbers}).value();
  };
  EXPECT_EQ(named("layers.2.fc1.weight7"), "decoder.layers.2.experts.weight");
  EXPECT_EQ(named("mtp.0.scales"), "mtp.layers.0.b");
  EXPECT_EQ(named("norm"), "final");
  EXPECT_EQ(named("layers.2.fc1.weight"), "");
  EXPECT_TRUE(own.find("layers.0.fc1.weight0")->has_rank_parts);
  EXPECT_EQ(own.find("layers.0.scale")->extents[1].evaluate(Scope{sizes, {}}).value(), 6);
  EXPECT_TRUE(own.ignores("copy"));
  EXPECT_EQ(own.buffers.size(), 1U);
}

TEST(OwnNames, SayWhereTheyAreWrong) {
  const auto refusal = [](std::string_view what, std::string_view instead) {
    std::string text(kOwn);
    text.replace(text.find(what), what.size(), instead);
    const auto own = parse_own_names(text, "own.json");
    if (own) return std::string();
    EXPECT_EQ(own.error().code, Code::kMappingInvalid);
    return own.error().message;
  };
  EXPECT_THAT(refusal("rank_parts", "sorted"), HasSubstr("own.json#/of_layer/0/rows"));
  EXPECT_THAT(refusal("\"heads\", ", ""), HasSubstr("own.json#/of_layer/1/extents"));
  EXPECT_THAT(refusal("\"stack\": \"expert\"", "\"stacked\": 1"), HasSubstr("stacked"));
  EXPECT_THAT(refusal("weight{expert}", "{expert}weight"),
              HasSubstr("own.json#/of_layer/0/stored"));
  EXPECT_THAT(refusal("\"names\"", "\"name\""), HasSubstr("own.json#"));
  EXPECT_THAT(refusal("model.{layer}", "model.{}"), HasSubstr("own.json#/buffers/0"));
}

TEST(OwnNames, OfMliteAreBuiltIn) {
  const std::vector<OwnNames> all = built_in_mlite_names().value();
  EXPECT_EQ(all.size(), 5U);
  for (const OwnNames& own : all) EXPECT_THAT(own.families, testing::Not(IsEmpty())) << own.names;
}

}  // namespace
}  // namespace shardwright
