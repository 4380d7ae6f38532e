// SPDX-License-Identifier: Apache-2.0
#include "layout/finding_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace shardwright {
namespace {

// The names of parameters in a template.
std::set<std::string> names_in(std::string_view text) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("{{") || text.substr(i).starts_with("}}")) {
      ++i;
    } else if (text[i] == '{') {
      names.emplace(text.substr(i + 1, text.find('}', i) - i - 1));
    }
  }
  return names;
}

TEST(FindingRules, AreInOrderAndSayTheSameInBothLanguages) {
  std::string before;
  for (const FindingRule& rule : finding_rules()) {
    EXPECT_LT(before, rule.code);
    before = rule.code;
    EXPECT_FALSE(rule.message.english.empty());
    EXPECT_FALSE(rule.message.chinese.empty());
    EXPECT_EQ(names_in(rule.message.english), names_in(rule.message.chinese)) << rule.code;
    EXPECT_EQ(rule.message.english.find("  "), std::string_view::npos) << rule.code;
  }
  EXPECT_EQ(finding_codes().front(), "L01");
  EXPECT_EQ(finding_codes().size(), 39u);
}

TEST(FindingRules, FillsParametersIn) {
  const Phrase phrase = fill({"{{tp}} of {count}: {what}", "{what}：{count}"},
                             {{"count", 3}, {"what", Phrase{"names", "名称"}}});
  EXPECT_EQ(phrase.english, "{tp} of 3: names");
  EXPECT_EQ(phrase.chinese, "名称：3");
  EXPECT_EQ(fill({"{a} {b}", ""}, {{"a", "x"}}).english, "x {b}");
}

}  // namespace
}  // namespace shardwright
