// SPDX-License-Identifier: Apache-2.0
#include "layout/texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "layout/finding_rules.h"

namespace shardwright {
namespace {

// The names of parameters in a text.
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

TEST(Texts, AreTheSameInBothLanguages) {
  const std::span<const Text> chinese = chinese_texts();
  ASSERT_EQ(kEnglishTexts.size(), chinese.size());
  std::string_view before;
  for (std::size_t i = 0; i < chinese.size(); ++i) {
    const auto& [key, text] = kEnglishTexts[i];
    EXPECT_LT(before, key) << "in order, each once";
    before = key;
    EXPECT_EQ(chinese[i].key, key);
    EXPECT_FALSE(text.empty()) << key;
    EXPECT_FALSE(chinese[i].text.empty()) << key;
    EXPECT_EQ(names_in(text), names_in(chinese[i].text)) << key;
    EXPECT_EQ(text.find("  "), std::string_view::npos) << key;
  }
}

TEST(Texts, TakeParametersByName) {
  const Phrase sent = phrase("stages.uneven", {{"stages", 2}, {"layers", 3}});
  EXPECT_EQ(sent.english, "none, 3 layers do not divide by 2");
  EXPECT_EQ(sent.chinese, "不存在（3 层不能被 2 整除）");
  const Phrase words = phrase("shown.sibling", {{"entry", "x"}, {"what", phrase("none")}});
  EXPECT_EQ(words.english, "x shows none");
  EXPECT_EQ(words.chinese, "x 表明这是无");
}

TEST(Texts, EachFindingHasOne) {
  std::set<std::string> codes;
  for (const Text& text : kEnglishTexts) {
    if (text.key.starts_with('L')) codes.emplace(text.key);
  }
  EXPECT_THAT(finding_codes(), ::testing::ElementsAreArray(codes));
  EXPECT_EQ(codes.size(), 51U);
}

}  // namespace
}  // namespace shardwright
