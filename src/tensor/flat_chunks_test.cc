// SPDX-License-Identifier: Apache-2.0
#include "tensor/flat_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace shardwright {
namespace {

std::vector<std::string> boxes(const Dims& shape, std::int64_t from, std::int64_t to) {
  std::vector<std::string> text;
  for (const FlatBox& part : split_flat_range(shape, from, to)) {
    text.push_back(to_string(part.box) + " @" + std::to_string(part.first));
  }
  return text;
}

TEST(FlatRange, IsAPartialRowThenRowsThenAPartialRow) {
  using testing::ElementsAre;
  EXPECT_THAT(boxes({4, 5}, 3, 17),
              ElementsAre("[0:1, 3:5] @0", "[1:3, 0:5] @2", "[3:4, 0:2] @12"));
  EXPECT_THAT(boxes({4, 5}, 6, 8), ElementsAre("[1:2, 1:3] @0"));
  EXPECT_THAT(boxes({4, 5}, 0, 20), ElementsAre("[0:4, 0:5] @0"));
  EXPECT_THAT(boxes({2, 3, 4}, 5, 21), ElementsAre("[0:1, 1:2, 1:4] @0", "[0:1, 2:3, 0:4] @3",
                                                   "[1:2, 0:2, 0:4] @7", "[1:2, 2:3, 0:1] @15"));
  EXPECT_THAT(boxes({}, 0, 1), ElementsAre("[] @0"));
  EXPECT_THAT(boxes({4, 5}, 7, 7), ElementsAre());
}

// Each element of the range, once and in order.
RC_GTEST_PROP(FlatRange, CoversItsElementsInOrder, ()) {
  Dims shape;
  const int axes = *rc::gen::inRange(1, 5);
  std::int64_t elements = 1;
  for (int axis = 0; axis < axes; ++axis) {
    shape.push_back(*rc::gen::inRange<std::int64_t>(1, 5));
    elements *= shape[axis];
  }
  const auto from = *rc::gen::inRange<std::int64_t>(0, elements + 1);
  const auto to = *rc::gen::inRange<std::int64_t>(from, elements + 1);
  const Dims strides = row_major_strides(shape);
  std::int64_t next = from;
  for (const FlatBox& part : split_flat_range(shape, from, to)) {
    RC_ASSERT(part.first == next - from);
    std::int64_t first = 0;
    std::int64_t last = 0;
    for (int axis = 0; axis < axes; ++axis) {
      first += part.box.origin[axis] * strides[axis];
      last += (part.box.end(axis) - 1) * strides[axis];
    }
    RC_ASSERT(first == next);
    RC_ASSERT(last - first + 1 == part.box.volume());
    next = last + 1;
  }
  RC_ASSERT(next == to);
}

}  // namespace
}  // namespace shardwright
