// SPDX-License-Identifier: Apache-2.0
#include "shardwright/catalog.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tensor/chunk_index.h"

namespace shardwright {
namespace {

StoredTensor tensor_of(const Dims& shape, std::initializer_list<Box> boxes) {
  StoredTensor tensor{{"w", DType::kF32, shape}, ChunkList(shape.size()), Encoding::kRaw};
  for (const Box& box : boxes) tensor.chunks.push_back(Chunk{box, 0, {}, {}});
  return tensor;
}

TEST(ChunkList, KeepsStridesOfTheChunksThatHaveThem) {
  ChunkList list(2);
  list.push_back({Box{{0, 0}, {2, 3}}, 1, {10, 24}, {}});
  list.push_back({Box{{2, 0}, {2, 3}}, 2, {34, 24}, Dims{1, 2}});
  list.push_back({Box{{4, 0}, {1, 3}}, 3, {58, 12}, {}});
  ASSERT_EQ(list.size(), 3U);
  EXPECT_TRUE(list[0].strides.empty());
  EXPECT_EQ(list[1].strides, (Dims{1, 2}));
  EXPECT_TRUE(list[2].strides.empty());
  EXPECT_EQ(list[2].box, (Box{{4, 0}, {1, 3}}));
  EXPECT_EQ(list[1].file, 2U);
  EXPECT_EQ(list[1].range.offset, 34U);
}

TEST(CheckCoverage, AcceptsGridsScalarsReplicasAndEmptyChunks) {
  EXPECT_TRUE(check_coverage(tensor_of({4, 4}, {{{0, 0}, {4, 2}}, {{0, 2}, {4, 2}}})));
  EXPECT_TRUE(check_coverage(tensor_of({}, {Box{}})));
  EXPECT_TRUE(check_coverage(tensor_of({4}, {{{0}, {4}}, {{0}, {4}}}))) << "replicas count once";
  EXPECT_EQ(check_coverage(tensor_of({4}, {{{0}, {3}}, {{0}, {3}}, {{0}, {3}}})).error().code,
            Code::kHole)
      << "and not for what nobody holds";
  EXPECT_EQ(
      check_coverage(tensor_of({4}, {{{0}, {3}}, {{0}, {3}}, {{2}, {2}}, {{0}, {3}}})).error().code,
      Code::kOverlap);
  EXPECT_EQ(
      check_coverage(tensor_of({4}, {{{0}, {4}}, {{0}, {4}}}), Replicas::kForbidden).error().code,
      Code::kOverlap);
  EXPECT_TRUE(check_coverage(tensor_of({4}, {{{0}, {4}}, {{4}, {0}}})));
  EXPECT_TRUE(check_coverage(tensor_of({0, 4}, {})));
}

TEST(CheckCoverage, NamesTheHole) {
  const Status status =
      check_coverage(tensor_of({4, 4}, {{{0, 0}, {2, 4}}, {{2, 0}, {2, 1}}, {{2, 2}, {2, 2}}}));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kHole);
  EXPECT_NE(status.error().message.find("[2:4, 1:2]"), std::string::npos) << status.error().message;
}

TEST(CheckCoverage, NamesTheOverlap) {
  const Status status = check_coverage(tensor_of({4}, {{{0}, {3}}, {{2}, {2}}}));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kOverlap);
  EXPECT_NE(status.error().message.find("[0:3]"), std::string::npos);
}

TEST(CheckCoverage, RefusesChunksOutside) {
  EXPECT_EQ(check_coverage(tensor_of({4}, {{{1}, {4}}})).error().code, Code::kOutOfBounds);
}

// Cuts [0, extent) at random places.
std::vector<std::int64_t> cuts(std::int64_t extent) {
  std::vector<std::int64_t> at{0, extent};
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) at.push_back(*rc::gen::inRange<std::int64_t>(0, extent + 1));
  std::sort(at.begin(), at.end());
  return at;
}

RC_GTEST_PROP(ChunkIndex, FindsWhatAScanFinds, ()) {
  const Dims shape{*rc::gen::inRange<std::int64_t>(1, 20), *rc::gen::inRange<std::int64_t>(1, 20),
                   *rc::gen::inRange<std::int64_t>(1, 5)};
  StoredTensor tensor{{"w", DType::kU8, shape}, ChunkList(3), Encoding::kRaw};
  const auto rows = cuts(shape[0]);
  for (std::size_t r = 0; r + 1 < rows.size(); ++r) {
    const auto columns = cuts(shape[1]);
    for (std::size_t c = 0; c + 1 < columns.size(); ++c) {
      tensor.chunks.push_back({Box{{rows[r], columns[c], 0},
                                   {rows[r + 1] - rows[r], columns[c + 1] - columns[c], shape[2]}},
                               0,
                               {},
                               {}});
    }
  }
  RC_ASSERT(check_coverage(tensor).has_value());
  const Dims origin{*rc::gen::inRange<std::int64_t>(0, shape[0]),
                    *rc::gen::inRange<std::int64_t>(0, shape[1]), 0};
  const Box query{origin, Dims{*rc::gen::inRange<std::int64_t>(1, shape[0] - origin[0] + 1),
                               *rc::gen::inRange<std::int64_t>(1, shape[1] - origin[1] + 1), 1}};
  std::vector<std::uint32_t> found;
  ChunkIndex(tensor.chunks).find(query, found);
  std::sort(found.begin(), found.end());
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < tensor.chunks.size(); ++i) {
    if (intersect(tensor.chunks.box(i), query)) expected.push_back(i);
  }
  RC_ASSERT(found == expected);

  // Taking one non-empty chunk away must be noticed.
  StoredTensor holed = tensor;
  holed.chunks = ChunkList(3);
  const std::size_t victim = expected.front();
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    if (i != victim) holed.chunks.push_back(tensor.chunks[i]);
  }
  RC_ASSERT(check_coverage(holed).error().code == Code::kHole);
}

}  // namespace
}  // namespace shardwright
