// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "shardwright/tensor.h"

namespace shardwright {
namespace {

TEST(MakeBox, RefusesWhatLeavesTheTensor) {
  const Dims outer{4, 8};
  EXPECT_TRUE(make_box({0, 0}, {4, 8}, outer));
  EXPECT_TRUE(make_box({4, 0}, {0, 8}, outer)) << "torch writes empty shards at the end";
  EXPECT_EQ(make_box({1, 0}, {4, 8}, outer).error().code, Code::kOutOfBounds);
  EXPECT_EQ(make_box({-1, 0}, {1, 8}, outer).error().code, Code::kOutOfBounds);
  EXPECT_EQ(make_box({0, 0}, {4}, outer).error().code, Code::kOutOfBounds);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(make_box({2, huge}, {1, 2}, outer).error().code, Code::kOutOfBounds);
}

TEST(Intersect, KeepsTheCommonRegionOnly) {
  const Box a{{0, 0}, {4, 4}};
  EXPECT_EQ(intersect(a, Box{{2, 3}, {4, 4}}), (Box{{2, 3}, {2, 1}}));
  EXPECT_FALSE(intersect(a, Box{{4, 0}, {1, 4}}));
  EXPECT_FALSE(intersect(a, Box{{1, 1}, {0, 2}}));
  EXPECT_EQ(intersect(Box{}, Box{}), Box{}) << "two scalars meet";
}

TEST(ElementCount, RefusesOverflowAndNegativeExtents) {
  EXPECT_EQ(element_count({3, 4}).value(), 12);
  EXPECT_EQ(element_count({}).value(), 1);
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(element_count({big, big}).error().code, Code::kLimit);
  EXPECT_EQ(element_count({big, big, 0}).error().code, Code::kLimit);
  EXPECT_EQ(element_count({-1}).error().code, Code::kOutOfBounds);
  EXPECT_EQ(element_count({std::int64_t{1} << 61, 0}).error().code, Code::kLimit)
      << "nothing would be stored, and rows would be multiplied by ranks";
  EXPECT_EQ(element_count({0, std::int64_t{1} << 48}).value(), 0);
  EXPECT_EQ(byte_count({big, std::int64_t{1} << 22}, DType::kF32).error().code, Code::kLimit);
}

TEST(DTypeNames, AgreeInBothDirections) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_torch(torch_name(dtype)), dtype);
    EXPECT_EQ(bits_of(dtype), bytes_of(dtype) * 8);
    if (!safetensors_name(dtype).empty()) {
      EXPECT_EQ(dtype_from_safetensors(safetensors_name(dtype)), dtype);
    }
  }
  EXPECT_FALSE(dtype_from_safetensors(""));
  EXPECT_FALSE(dtype_from_torch("qint8"));
}

TEST(RowMajorStrides, SurviveEmptyAxes) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(row_major_strides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(byte_strides({12, 4, 1}, 2), (Dims{24, 8, 2}));
}

}  // namespace
}  // namespace shardwright
