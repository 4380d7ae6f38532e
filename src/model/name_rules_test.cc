// SPDX-License-Identifier: Apache-2.0
#include "model/name_rules.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr std::string_view kRules = R"({
  "about": "of the test", "names": "own", "writers": "a trainer", "families": ["llama"],
  "rules": [
    {"stored": ["layers.{layer}.wq.weight", "layers.{layer}.qkv.wq.weight"],
     "hf": "model.layers.{layer}.q_proj.weight", "order": "rotary_pairs", "cut": 0},
    {"stored": ["layers.{layer}.w1"], "hf": "model.layers.{layer}.experts.{expert}.w.weight",
     "stack": "expert", "cut": [0, 1]}
  ],
  "ignore": ["freqs", "layers.{layer}.count"]
})";

TEST(NumberedName, MatchesWholePartsThatAreNumbers) {
  const NumberedName name = NumberedName::parse("layers.{layer}.wo.weight").value();
  const auto numbers = name.match("layers.12.wo.weight");
  ASSERT_TRUE(numbers);
  ASSERT_EQ(numbers->size(), 1U);
  EXPECT_EQ((*numbers)[0].name, "layer");
  EXPECT_EQ((*numbers)[0].value, 12);
  for (const char* other :
       {"layers.x.wo.weight", "layers.1a.wo.weight", "layers.01.wo.weight", "layers.-1.wo.weight",
        "layers.1.wo", "layers.1.wo.weight.more", "layers.1.wo.weight.", "a.layers.1.wo.weight",
        "layers.99999999999999999999.wo.weight", ""}) {
    EXPECT_FALSE(name.match(other)) << other;
  }
}

TEST(NumberedName, MayEndAPartWithANumber) {
  const NumberedName name = NumberedName::parse("layers.{layer}.fc1.weight{expert}").value();
  const auto numbers = name.match("layers.3.fc1.weight12");
  ASSERT_TRUE(numbers);
  ASSERT_EQ(numbers->size(), 2U);
  EXPECT_EQ((*numbers)[1].name, "expert");
  EXPECT_EQ((*numbers)[1].value, 12);
  for (const char* other : {"layers.3.fc1.weight", "layers.3.fc1.weight012", "layers.3.fc1.12",
                            "layers.3.fc1.bias12", "layers.3.fc1.weight1x"}) {
    EXPECT_FALSE(name.match(other)) << other;
  }
}

TEST(NumberedName, RefusesBracesWithinAPart) {
  for (const char* text : {"a.w{}", "a.{}", "a..b", "a.{i}b", "a.{i}{j}", "a.}i{", "a.{{i}}"}) {
    const auto name = NumberedName::parse(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().code, Code::kMappingInvalid);
  }
}

TEST(NameRules, AreRead) {
  const NameRules rules = parse_name_rules(kRules, "own.json").value();
  EXPECT_EQ(rules.names, "own");
  EXPECT_EQ(rules.families, std::vector<std::string>{"llama"});
  ASSERT_EQ(rules.rules.size(), 2U);
  EXPECT_TRUE(rules.rules[0].match("layers.3.qkv.wq.weight"));
  EXPECT_TRUE(rules.rules[0].has_rotary_pairs);
  EXPECT_EQ(rules.rules[0].cuts, std::vector<int>{0});
  EXPECT_EQ(rules.rules[1].stack, "expert");
  EXPECT_EQ(rules.rules[1].cuts, (std::vector<int>{0, 1}));
  EXPECT_TRUE(rules.ignores("layers.3.count"));
  EXPECT_FALSE(rules.ignores("layers.3.wq.weight"));
}

TEST(NameRules, SayWhereTheyAreWrong) {
  const auto code_of = [](std::string text, std::string_view what, std::string_view instead) {
    text.replace(text.find(what), what.size(), instead);
    const auto rules = parse_name_rules(text, "own.json");
    return rules ? "read" : std::string(rules.error().message);
  };
  const std::string text(kRules);
  EXPECT_NE(code_of(text, "rotary_pairs", "sorted").find("own.json#/rules/0/order"),
            std::string::npos);
  EXPECT_NE(code_of(text, "\"expert\",", "\"other\",").find("own.json#/rules/1/stack"),
            std::string::npos);
  EXPECT_NE(code_of(text, "\"cut\": 0", "\"cut\": -1").find("own.json#/rules/0/cut"),
            std::string::npos);
  EXPECT_NE(code_of(text, "\"ignore\"", "\"ignored\"").find("ignored"), std::string::npos);
  EXPECT_NE(code_of(text, "layers.{layer}.w1", "{layer}layers.w1").find("own.json#/rules/1/stored"),
            std::string::npos);
}

}  // namespace
}  // namespace shardwright
