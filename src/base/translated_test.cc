// SPDX-License-Identifier: Apache-2.0
#include "base/translated.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/fail.h"

namespace shardwright {
namespace {

std::string_view backwards(std::string_view english) {
  if (english == "{}: found {}, expected {}") return "{2} statt {1} in {0}";
  if (english == "an empty file") return "nichts";
  if (english == "twice") return "zweimal";
  return {};
}

std::string said(std::string_view found) {
  return fail(Code::kIo, "{}: found {}, expected {}", "a.bin", found, 3).error().message;
}

TEST(Translated, IsEnglishWithoutATranslator) {
  EXPECT_TRUE(speaks_english());
  EXPECT_EQ(said("an empty file"), "a.bin: found an empty file, expected 3");
  EXPECT_EQ(in_language("twice"), "twice");
}

TEST(Translated, TakesTheSameArgumentsInAnotherOrder) {
  const Speaking speaking(backwards);
  EXPECT_FALSE(speaks_english());
  EXPECT_EQ(said("7"), "3 statt 7 in a.bin");
}

TEST(Translated, SaysPhrasesAmongTheArgumentsButLeavesNamesAlone) {
  const Speaking speaking(backwards);
  EXPECT_EQ(said("an empty file"), "3 statt nichts in a.bin");
  EXPECT_EQ(said("twice"), "3 statt twice in a.bin");
  EXPECT_EQ(said(translated("twice")), "3 statt zweimal in a.bin");
  EXPECT_EQ(translated("{}|{}|{}", std::string("an empty file"), "an empty file", 1.5),
            "nichts|nichts|1.5");
}

TEST(Translated, IsEnglishForWhatHasNoTranslation) {
  const Speaking speaking(backwards);
  EXPECT_EQ(translated("{} of {}", 1, 2), "1 of 2");
}

TEST(Speaking, EndsWithItsScope) {
  {
    const Speaking outer(backwards);
    {
      const Speaking inner(nullptr);
      EXPECT_TRUE(speaks_english());
    }
    EXPECT_FALSE(speaks_english());
  }
  EXPECT_TRUE(speaks_english());
}

}  // namespace
}  // namespace shardwright
