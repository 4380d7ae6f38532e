// SPDX-License-Identifier: Apache-2.0
#include "cli/name_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace shardwright::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NamePatterns, KnowNumbersThatCount) {
  EXPECT_THAT(name_patterns({"m.layers.10.mlp.w", "m.layers.9.mlp.w"}),
              ElementsAre("m.layers.{9,10}.mlp.w"));
  EXPECT_THAT(name_patterns({"mlp.linear_fc1.weight", "mlp.linear_fc2.weight"}),
              ElementsAre("mlp.linear_fc1.weight", "mlp.linear_fc2.weight"));
  EXPECT_THAT(name_patterns({"experts.weight1", "experts.weight12"}),
              ElementsAre("experts.weight{1,12}"));
  EXPECT_THAT(name_patterns({"0.1", "0.2"}), ElementsAre("0.{1,2}"));
  EXPECT_THAT(name_patterns({""}), ElementsAre(""));
  // Neither 007 nor 00 is a number's own form, so these are names of several shapes.
  EXPECT_THAT(name_patterns({"a.007.b", "a.7.b", "a.0.b", "a.00", "a.0"}),
              ElementsAre("a.007.b", "a.{0,7}.b", "a.00", "a.0"));
  EXPECT_THAT(name_patterns({"a.99999999999999999999.b", "a.0.b"}),
              ElementsAre("a.99999999999999999999.b", "a.0.b"));
}

TEST(NamePatterns, JoinWhatIsComplete) {
  EXPECT_THAT(name_patterns({"l.0.w", "l.1.w", "l.2.w", "l.0.b", "norm"}),
              ElementsAre("l.{0..2}.w", "l.0.b", "norm"));
  EXPECT_THAT(name_patterns({"l.3.w", "l.7.w"}), ElementsAre("l.{3,7}.w"));
  EXPECT_THAT(name_patterns({"l.0.e.0", "l.0.e.1", "l.1.e.0", "l.1.e.1"}),
              ElementsAre("l.{0,1}.e.{0,1}"));
  EXPECT_THAT(name_patterns({"l.0.w", "l.0.w"}), ElementsAre("l.0.w"));
  EXPECT_THAT(name_patterns({}), IsEmpty());
}

TEST(NamePatterns, ListWhatIsNot) {
  EXPECT_THAT(name_patterns({"l.0.e.0", "l.0.e.1", "l.1.e.0"}),
              ElementsAre("l.0.e.0", "l.0.e.1", "l.1.e.0"));
}

// Expands `{a..b}` and `{a,b}` again.
void expand(const std::string& pattern, std::set<std::string>& names) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) {
    names.insert(pattern);
    return;
  }
  const std::size_t close = pattern.find('}');
  const std::string inner = pattern.substr(open + 1, close - open - 1);
  const std::size_t dots = inner.find("..");
  std::vector<std::string> values;
  if (dots != std::string::npos) {
    for (int i = std::stoi(inner); i <= std::stoi(inner.substr(dots + 2)); ++i) {
      values.push_back(std::to_string(i));
    }
  } else {
    for (std::size_t at = 0; at <= inner.size();) {
      const std::size_t end = std::min(inner.find(',', at), inner.size());
      values.push_back(inner.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const std::string& value : values) {
    expand(pattern.substr(0, open) + value + pattern.substr(close + 1), names);
  }
}

RC_GTEST_PROP(NamePatterns, SayExactlyWhichNames, ()) {
  const auto number = rc::gen::map(rc::gen::inRange(0, 4), [](int n) { return std::to_string(n); });
  const auto names = *rc::gen::container<std::vector<std::string>>(
      rc::gen::apply([](const std::string& kind, const std::string& a,
                        const std::string& b) { return kind + "." + a + ".x." + b; },
                     rc::gen::element<std::string>("p", "q"), number, number));
  std::set<std::string> expanded;
  for (const std::string& pattern : name_patterns(names)) expand(pattern, expanded);
  RC_ASSERT(expanded == std::set<std::string>(names.begin(), names.end()));
}

TEST(RenamePatterns, PutTheSameKindTogether) {
  const std::vector<RenamedTensor> renames = {{{"m.0.q", "m.0.k"}, "d.0.qkv"},
                                              {{"embed"}, "word"},
                                              {{"m.1.q", "m.1.k"}, "d.1.qkv"},
                                              {{}, "d.0.made"}};
  const auto patterns = rename_patterns({&renames[0], &renames[1], &renames[2], &renames[3]});
  ASSERT_EQ(patterns.size(), 3u);
  EXPECT_THAT(patterns[0].source, ElementsAre("m.{0,1}.q", "m.{0,1}.k"));
  EXPECT_THAT(patterns[0].target, ElementsAre("d.{0,1}.qkv"));
  EXPECT_THAT(patterns[1].source, ElementsAre("embed"));
  EXPECT_THAT(patterns[2].source, IsEmpty());
  EXPECT_THAT(patterns[2].target, ElementsAre("d.0.made"));
}

}  // namespace
}  // namespace shardwright::cli
