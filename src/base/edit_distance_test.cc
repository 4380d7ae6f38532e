// SPDX-License-Identifier: Apache-2.0
#include "base/edit_distance.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace shardwright {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("convert", "covnert"), 1u);
  EXPECT_EQ(edit_distance("inspect", "inspct"), 1u);
  EXPECT_EQ(edit_distance("plan", "plane"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndBounded, (const std::string& a, const std::string& b)) {
  const std::size_t distance = edit_distance(a, b);
  RC_ASSERT(distance == edit_distance(b, a));
  RC_ASSERT(distance <= std::max(a.size(), b.size()));
  RC_ASSERT((distance == 0) == (a == b));
}

TEST(NearestOf, LooksAtAThousand) {
  std::vector<std::string> names(999, "explode");
  names.push_back("convert");
  EXPECT_EQ(nearest_of("covnert", names), "convert");
  names.insert(names.begin(), "explode");
  EXPECT_EQ(nearest_of("covnert", names), "");
}

TEST(NearestOf, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kNames = {"convert", "inspect", "plan", "demo"};
  EXPECT_EQ(nearest_of("covnert", kNames), "convert");
  EXPECT_EQ(nearest_of("inspet", kNames), "inspect");
  EXPECT_EQ(nearest_of("plam", kNames), "plan");
  EXPECT_EQ(nearest_of("explode", kNames), "");
  EXPECT_EQ(nearest_of("", kNames), "");
  EXPECT_EQ(nearest_of("x", kNames), "");
  EXPECT_EQ(nearest_of(std::string(300, 'a'), kNames), "");
  EXPECT_EQ(nearest_of("convert", std::vector<std::string>()), "");
}

}  // namespace
}  // namespace shardwright
