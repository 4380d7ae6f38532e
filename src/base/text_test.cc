// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace shardwright {
namespace {

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("模型"), 4);
  EXPECT_EQ(display_width("ﾓ"), 1);
  EXPECT_EQ(display_width("Ａ"), 2);
  EXPECT_EQ(display_width("→…×"), 3);
  EXPECT_EQ(display_width("\U0001F600"), 2);
  EXPECT_EQ(display_width("한글"), 4);
  EXPECT_EQ(display_width("\xff\xfe"), 2);
}

TEST(FrontCodePoint, RefusesWhatIsNoUtf8) {
  for (const std::string_view text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xe4\xbd", "\xc3", "\xc3(", "\xff"}) {
    const CodePoint point = front_code_point(text);
    EXPECT_FALSE(point.valid) << printable(text);
    EXPECT_EQ(point.bytes, 1u);
  }
  EXPECT_EQ(front_code_point("\xf4\x8f\xbf\xbf").value, 0x10FFFFu);
  EXPECT_EQ(front_code_point("你").value, 0x4F60u);
  EXPECT_EQ(front_code_point("你").bytes, 3u);
}

TEST(FitWidth, CutsBetweenCharacters) {
  EXPECT_EQ(fit_width("abc", 3), "abc");
  EXPECT_EQ(fit_width("abcd", 3), "ab…");
  EXPECT_EQ(fit_width("模型模型", 5), "模型…");
  EXPECT_EQ(fit_width("模型模型", 4), "模…");
  EXPECT_EQ(fit_width("abc", 1), "…");
  EXPECT_EQ(fit_width("abc", 0), "");
}

RC_GTEST_PROP(FitWidth, NeverExceedsItsColumns, (const std::string& text)) {
  const int columns = *rc::gen::inRange(0, 20);
  RC_ASSERT(display_width(fit_width(text, columns)) <= columns);
}

TEST(SplitAt, GivesWhatStandsBetween) {
  EXPECT_EQ(split_at("a.bc..", '.'), (std::vector<std::string_view>{"a", "bc", "", ""}));
  EXPECT_EQ(split_at("", '.'), (std::vector<std::string_view>{""}));
}

TEST(Printable, EscapesWhatActsOnTerminals) {
  EXPECT_EQ(printable("层.weight"), "层.weight");
  EXPECT_EQ(printable("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("\u009b2J"), "\\x9b2J");
  EXPECT_EQ(printable("a\u202eb"), "a\\u{202e}b");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

RC_GTEST_PROP(Printable, LeavesNoControlBytes, (const std::string& text)) {
  for (const char c : printable(text)) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

TEST(NaturalLess, CountsLikePeople) {
  std::vector<std::string> names = {"layers.10.a",
                                    "layers.2.b",
                                    "layers.2.a",
                                    "layers",
                                    "layers.1",
                                    "layers.01",
                                    "embedding",
                                    "layers.99999999999999999999",
                                    "layers.100000000000000000000"};
  std::sort(names.begin(), names.end(), natural_less);
  EXPECT_EQ(names,
            (std::vector<std::string>{"embedding", "layers", "layers.01", "layers.1", "layers.2.a",
                                      "layers.2.b", "layers.10.a", "layers.99999999999999999999",
                                      "layers.100000000000000000000"}));
}

RC_GTEST_PROP(NaturalLess, IsAStrictOrder, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::element('0', '1', '9', 'a', '.'));
  const std::string a = *text;
  const std::string b = *text;
  const std::string c = *text;
  RC_ASSERT(!natural_less(a, a));
  RC_ASSERT((a == b) == (!natural_less(a, b) && !natural_less(b, a)));
  RC_ASSERT(!(natural_less(a, b) && natural_less(b, a)));
  if (natural_less(a, b) && natural_less(b, c)) RC_ASSERT(natural_less(a, c));
}

TEST(Text, ShellQuotedQuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(shell_quoted("a/b-c_1.2"), "a/b-c_1.2");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("$(x)"), "'$(x)'");
  EXPECT_EQ(shell_quoted("~"), "'~'");
  EXPECT_EQ(shell_quoted("模型"), "'模型'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("a\nb\t'\\"), "$'a\\x0ab\\x09\\'\\\\'");
  EXPECT_EQ(shell_quoted("模\xff"), "$'模\\xff'");
}

}  // namespace
}  // namespace shardwright
