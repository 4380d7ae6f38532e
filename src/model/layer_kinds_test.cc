// SPDX-License-Identifier: Apache-2.0
#include "model/layer_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;
using Numbers = std::vector<std::int64_t>;

ConfigRule rule_of(ConfigRule::Kind kind) {
  ConfigRule rule;
  rule.kind = kind;
  rule.hf = {"list", "short"};
  rule.args = {"argument"};
  return rule;
}
const ConfigRule kLinear = rule_of(ConfigRule::Kind::kLinearAttention);
const ConfigRule kPattern = rule_of(ConfigRule::Kind::kBlockPattern);

ArgValue argument_of(const ConfigRule& rule, const Arguments& hf, std::int64_t layers) {
  const auto kinds = layer_kinds_from_hf(rule, hf, layers);
  if (!kinds) return ArgValue{kinds.error().message};
  return *kinds ? layer_kinds_argument(rule, **kinds) : ArgValue{};
}

std::string kinds_refusal(const ConfigRule& rule, const Arguments& hf, std::int64_t layers) {
  const auto kinds = layer_kinds_from_hf(rule, hf, layers);
  return kinds ? "accepted" : kinds.error().message;
}

const std::string kL = "linear_attention";
const std::string kF = "full_attention";

TEST(LayerKinds, OfLinearAttentionAreANumberWhereTheyAlternateEvenly) {
  EXPECT_EQ(argument_of(kLinear, {{"list", Words{kL, kF, kL, kF}}}, 4), ArgValue{std::int64_t{2}});
  EXPECT_EQ(argument_of(kLinear, {{"list", Words{kL, kL, kF, kL}}}, 4), ArgValue{std::int64_t{3}});
  EXPECT_EQ(argument_of(kLinear, {{"list", Words{kF, kL, kL, kF}}}, 4),
            (ArgValue{Numbers{0, 1, 1, 0}}));
  EXPECT_EQ(argument_of(kLinear, {{"list", Words{kL, kL}}}, 2), (ArgValue{Numbers{1, 1}}));
  EXPECT_EQ(argument_of(kLinear, {{"short", std::int64_t{4}}}, 9), ArgValue{std::int64_t{4}});
  EXPECT_EQ(argument_of(kLinear, {}, 9), ArgValue{});
  ConfigRule with_default = kLinear;
  with_default.fallback = ArgValue{std::int64_t{4}};
  EXPECT_EQ(argument_of(with_default, {}, 9), ArgValue{std::int64_t{4}});
}

TEST(LayerKinds, OfLinearAttentionMayBeNumbersFromOne) {
  ConfigRule rule = kLinear;
  rule.hf = {"list", "short", "full", "rest"};
  EXPECT_EQ(argument_of(rule, {{"full", Numbers{2, 4}}, {"rest", Numbers{1, 3}}}, 4),
            ArgValue{std::int64_t{2}});
  EXPECT_EQ(argument_of(rule, {{"full", Numbers{1, 4}}}, 4), (ArgValue{Numbers{0, 1, 1, 0}}));
  EXPECT_EQ(argument_of(rule, {{"list", Words{kL, kF}}, {"full", Numbers{2}}}, 2),
            ArgValue{std::int64_t{2}});
  EXPECT_THAT(kinds_refusal(rule, {{"list", Words{kL, kF}}, {"full", Numbers{1}}}, 2),
              HasSubstr("full = [1], expected the layers that list lists"));
  for (const std::int64_t number : {0, 3}) {
    EXPECT_THAT(kinds_refusal(rule, {{"full", Numbers{number}}}, 2),
                HasSubstr("expected numbers from 1 to 2"));
  }
}

TEST(LayerKinds, OfBlocksAreLetters) {
  const Words now{kL, "moe", kF, "mlp"};
  const Words once{"mamba", "moe", "attention", "mlp"};
  for (const Words& words : {now, once}) {
    EXPECT_EQ(argument_of(kPattern, {{"list", words}}, 4), ArgValue{std::string("ME*-")});
  }
  EXPECT_EQ(argument_of(kPattern, {{"short", std::string("M-M*")}, {"list", ArgValue{}}}, 4),
            ArgValue{std::string("M-M*")});
}

TEST(LayerKinds, ThatContradictThemselvesAreRefused) {
  EXPECT_THAT(kinds_refusal(kLinear, {{"list", Words{kL, kF}}, {"short", std::int64_t{1}}}, 2),
              HasSubstr("found short = 1, expected the layers that list lists"));
  EXPECT_THAT(kinds_refusal(kLinear, {{"list", Words{kL, kF}}}, 3),
              HasSubstr("list: found 2 layers, "));
  EXPECT_THAT(kinds_refusal(kLinear, {{"list", Words{"mlp"}}}, 1), HasSubstr("list: found 'mlp'"));
  EXPECT_THAT(kinds_refusal(kLinear, {{"short", std::int64_t{0}}}, 1), HasSubstr("short: found 0"));
  EXPECT_THAT(kinds_refusal(kLinear, {{"list", std::int64_t{1}}}, 1), HasSubstr("list: found 1"));
  EXPECT_THAT(kinds_refusal(kPattern, {{"short", std::string("MX")}}, 2),
              HasSubstr("short: found 'X'"));
  EXPECT_THAT(kinds_refusal(kPattern, {{"short", std::string("M")}}, 2),
              HasSubstr("found 1 layers"));
  EXPECT_THAT(kinds_refusal(kPattern, {{"short", std::int64_t{4}}}, 2),
              HasSubstr("a letter per layer"));
  EXPECT_THAT(kinds_refusal(kLinear, {{"short", std::int64_t{4}}}, std::int64_t{1} << 40),
              HasSubstr("expected at most"));
}

TEST(LayerKinds, ComeBackFromTheArgument) {
  EXPECT_EQ(layer_kinds_from_argument(kLinear, ArgValue{std::int64_t{2}}, 3).value(),
            (LayerKinds{kL, kF, kL}));
  EXPECT_EQ(layer_kinds_from_argument(kLinear, ArgValue{Numbers{0, 1}}, 2).value(),
            (LayerKinds{kF, kL}));
  EXPECT_EQ(layer_kinds_from_argument(kPattern, ArgValue{std::string("M|*/ME")}, 2).value(),
            (LayerKinds{kL, kF}))
      << "pipeline stages and prediction layers are no layers";
  EXPECT_FALSE(layer_kinds_from_argument(kLinear, ArgValue{Numbers{0, 1}}, 3));
  EXPECT_FALSE(layer_kinds_from_argument(kPattern, ArgValue{std::int64_t{2}}, 2));
  EXPECT_FALSE(layer_kinds_from_argument(kLinear, ArgValue{std::string("M")}, 1));
}

}  // namespace
}  // namespace shardwright
