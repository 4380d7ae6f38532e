// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "plan/view_index.h"
#include "shardwright/plan.h"

namespace shardwright {
namespace {

bool same(const TensorView& a, const TensorView& b) {
  return a.box == b.box && a.source == b.source && a.source_origin == b.source_origin &&
         a.axis == b.axis && a.step == b.step;
}

TensorView plane(std::int64_t row) {
  return {Box{{row, 0}, {1, 4}}, static_cast<std::uint32_t>(row), {row, 0}, {0, 1}, {1, 1}};
}

TEST(ViewList, GivesBackWhatItWasGiven) {
  const std::vector<TensorView> given = {
      plane(7),
      {Box{{0, 0}, {3, 4}}, 0xFFFFFFFF, {1, 2, 3}, {2, -1}, {5, 1}},  // longer
      {Box{{}, {}}, 3, {}, {}, {}},                                   // a number
      {Box{{1, 2, 3, 4, 5, 6, 7, 8}, Dims::filled(8, 9)},
       4,
       Dims::filled(8, 1),
       {0, 1, 2, 3, 4, 5, 6, 7},
       {1, 1, 1, 1, 1, 1, 1, 2}},
      {Box{{0, 0}, {3, 4}}, 5, {0}, {0}, {}},  // for check_plan to refuse
      plane(1),
  };
  ViewList views;
  EXPECT_TRUE(views.empty());
  for (const TensorView& view : given) views.push_back(view);
  ASSERT_EQ(views.size(), given.size());
  std::size_t i = 0;
  for (const TensorView& view : views) EXPECT_TRUE(same(view, given[i++])) << i;
  EXPECT_EQ(i, given.size());
}

TEST(ViewList, ChangesOneViewAndNoOther) {
  ViewList views = {plane(0), plane(1), plane(2)};
  TensorView stepped = plane(9);
  stepped.step = {2, 1};
  views.set(1, stepped);
  EXPECT_TRUE(same(views[0], plane(0)));
  EXPECT_TRUE(same(views[1], stepped));
  EXPECT_TRUE(same(views[2], plane(2)));
  views.set(1, plane(1));
  EXPECT_TRUE(same(views[1], plane(1)));
}

TEST(ViewList, TakesAWordForEachNumberAndOneMore) {
  ViewList views = {plane(0)};
  EXPECT_EQ(views.allocated_bytes(), 9 * sizeof(std::int64_t));
  for (std::int64_t row = 1; row < 1000; ++row) views.push_back(plane(row));
  views.shrink_to_fit();
  EXPECT_EQ(views.allocated_bytes(), 9000 * sizeof(std::int64_t));
  EXPECT_LE(sizeof(ViewList), 4 * sizeof(void*));
}

TEST(ViewIndex, FindsTheViewsOfABoxInTheirOrder) {
  for (const std::int64_t rows : {3, 200}) {  // scanned, searched
    ViewList views;
    for (std::int64_t row = rows; row-- > 0;) views.push_back(plane(row));
    const ViewIndex index(views, 2);
    std::vector<std::uint32_t> found = {77};
    index.find(Box{{1, 2}, {2, 1}}, found);
    std::vector<std::uint32_t> meeting = {77};
    for (std::size_t i = 1; i < found.size(); ++i) {
      if (intersect(views[found[i]].box, Box{{1, 2}, {2, 1}})) meeting.push_back(found[i]);
      EXPECT_TRUE(i == 1 || found[i - 1] < found[i]);
    }
    const auto last = static_cast<std::uint32_t>(rows - 2);
    EXPECT_EQ(meeting, (std::vector<std::uint32_t>{77, last - 1, last}));
    EXPECT_TRUE(rows < 100 || found.size() == 3) << "all were scanned";
  }
}

}  // namespace
}  // namespace shardwright
