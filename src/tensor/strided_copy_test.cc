// SPDX-License-Identifier: Apache-2.0
#include "tensor/strided_copy.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace shardwright {
namespace {

TEST(Collapse, JoinsDenseAxesAndKeepsOthers) {
  const CopyLoops dense = collapse({{2, 3, 4}, {24, 8, 2}, {24, 8, 2}});
  EXPECT_EQ(dense.shape, (Dims{24}));
  EXPECT_EQ(dense.source_strides, (Dims{2}));
  const CopyLoops rows = collapse({{2, 1, 4}, {16, 99, 2}, {8, 77, 2}});
  EXPECT_EQ(rows.shape, (Dims{2, 4}));
  EXPECT_EQ(rows.target_strides, (Dims{16, 2}));
}

TEST(SpanBytes, CountsFromFirstToLast) {
  EXPECT_EQ(span_bytes({2, 3}, {10, 2}, 2), 16);
  EXPECT_EQ(span_bytes({}, {}, 4), 4);
  EXPECT_EQ(span_bytes({0, 3}, {10, 2}, 2), 0);
}

RC_GTEST_PROP(StridedCopy, TransposesLikeIndexing, ()) {
  const int element_bytes = *rc::gen::element(1, 2, 4, 8, 16);
  const std::int64_t rows = *rc::gen::inRange(1, 9);
  const std::int64_t columns = *rc::gen::inRange(1, 9);
  std::vector<std::byte> source(static_cast<std::size_t>(rows * columns * element_bytes));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7 + 1);
  std::vector<std::byte> target(source.size());
  const std::int64_t size = element_bytes;
  strided_copy({{rows, columns}, {size, rows * size}, {columns * size, size}}, element_bytes,
               source.data(), target.data());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t b = 0; b < size; ++b) {
        RC_ASSERT(target[static_cast<std::size_t>((c * rows + r) * size + b)] ==
                  source[static_cast<std::size_t>((r * columns + c) * size + b)]);
      }
    }
  }
}

}  // namespace
}  // namespace shardwright
