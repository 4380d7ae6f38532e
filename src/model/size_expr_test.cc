// SPDX-License-Identifier: Apache-2.0
#include "model/size_expr.h"

#include <gtest/gtest.h>

#include "model/name_template.h"

namespace shardwright {
namespace {

Result<std::int64_t> evaluate(std::string_view text) {
  const ModelSizes sizes{{"heads", 6}, {"groups", 2}, {"head_dim", 5}, {"big", INT64_MAX}};
  const std::vector<Binding> bindings{{"layer", 7}};
  const SizeExpr expr = SW_TRY(SizeExpr::parse(text));
  return expr.evaluate(Scope{sizes, bindings});
}

TEST(SizeExpr, FollowsThePrecedenceOfArithmetic) {
  EXPECT_EQ(evaluate("heads / groups * head_dim").value(), 15);
  EXPECT_EQ(evaluate("heads + 2 * groups - 1").value(), 9);
  EXPECT_EQ(evaluate("12").value(), 12);
  EXPECT_EQ(evaluate("layer+heads").value(), 13);
  EXPECT_EQ(evaluate("heads - heads").value(), 0);
}

TEST(SizeExpr, RefusesWhatWouldMisplaceRows) {
  EXPECT_EQ(evaluate("head_dim / groups").error().code, Code::kNotDivisible);
  EXPECT_EQ(evaluate("heads / layer_count").error().code, Code::kConfigMissing);
  EXPECT_EQ(evaluate("groups - heads").error().code, Code::kConfigMissing);
  EXPECT_EQ(evaluate("heads / 0").error().code, Code::kNotDivisible);
  EXPECT_EQ(evaluate("big * 2").error().code, Code::kLimit);
  EXPECT_EQ(evaluate("big + big").error().code, Code::kLimit);
}

TEST(SizeExpr, RefusesBadSyntax) {
  for (const char* text : {"", " ", "heads heads", "heads *", "* heads", "heads ** 2", "(heads)",
                           "heads % 2", "99999999999999999999", "-heads", "he.ads"}) {
    const auto result = SizeExpr::parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::kMappingInvalid) << text;
  }
}

TEST(NameTemplate, FillsInItsNumbers) {
  const ModelSizes sizes{{"layers", 61}};
  const std::vector<Binding> bindings{{"mtp", 1}, {"expert", 12}};
  const auto name = NameTemplate::parse("model.layers.{layers + mtp}.mlp.experts.{expert}.w1");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->render(Scope{sizes, bindings}).value(), "model.layers.62.mlp.experts.12.w1");
  EXPECT_TRUE(name->uses("layers"));
  EXPECT_FALSE(name->uses("layer"));
}

TEST(NameTemplate, RefusesBadSyntax) {
  for (const char* text : {"", "a.{layer", "a.}", "a b", "a.{}", "a.{x y}", "a/b"}) {
    const auto result = NameTemplate::parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Code::kMappingInvalid) << text;
  }
}

}  // namespace
}  // namespace shardwright
