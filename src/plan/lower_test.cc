// SPDX-License-Identifier: Apache-2.0
#include "plan/lower.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace shardwright {
namespace {

// A source tensor of bytes whose chunks are a grid, each chunk in its own file at offset 0.
StoredTensor grid_tensor(const Dims& shape, const Dims& parts) {
  StoredTensor tensor{{"s", DType::kU8, shape}, ChunkList(shape.size()), Encoding::kRaw};
  std::uint32_t file = 0;
  for (std::int64_t r = 0; r < parts[0]; ++r) {
    for (std::int64_t c = 0; c < parts[1]; ++c) {
      const Dims origin{r * shape[0] / parts[0], c * shape[1] / parts[1]};
      const Dims end{(r + 1) * shape[0] / parts[0], (c + 1) * shape[1] / parts[1]};
      tensor.chunks.push_back(
          {Box{origin, {end[0] - origin[0], end[1] - origin[1]}}, file++, {0, 0}, {}});
    }
  }
  return tensor;
}

// Which source coordinate does a byte of a file hold?
std::pair<std::int64_t, std::int64_t> coordinate(const StoredTensor& tensor, std::uint32_t file,
                                                 std::uint64_t offset) {
  const Box box = tensor.chunks.box(file);
  const auto at = static_cast<std::int64_t>(offset);
  return {box.origin[0] + at / box.shape[1], box.origin[1] + at % box.shape[1]};
}

// Every element of the target must be lowered to exactly the source element that the view's
// definition names.
RC_GTEST_PROP(Lowering, AgreesWithTheDefinitionOfAView, ()) {
  const Dims source_shape{*rc::gen::inRange<std::int64_t>(1, 13),
                          *rc::gen::inRange<std::int64_t>(1, 13)};
  Plan plan;
  plan.source.tensors.push_back(
      grid_tensor(source_shape, {*rc::gen::inRange<std::int64_t>(1, source_shape[0] + 1),
                                 *rc::gen::inRange<std::int64_t>(1, source_shape[1] + 1)}));
  const bool transposed = *rc::gen::arbitrary<bool>();
  TensorView view;
  view.axis = transposed ? Dims{1, 0} : Dims{0, 1};
  view.source_origin = {*rc::gen::inRange<std::int64_t>(0, source_shape[0]),
                        *rc::gen::inRange<std::int64_t>(0, source_shape[1])};
  view.box.origin = {*rc::gen::inRange<std::int64_t>(0, 4), 0};
  for (int axis = 0; axis < 2; ++axis) {
    const int s = static_cast<int>(view.axis[axis]);
    const std::int64_t room = source_shape[s] - view.source_origin[s];
    const std::int64_t step = *rc::gen::inRange<std::int64_t>(1, 4);
    view.step.push_back(step);
    view.box.shape.push_back(*rc::gen::inRange<std::int64_t>(1, (room - 1) / step + 2));
  }
  const Dims target_shape{view.box.end(0), view.box.end(1)};
  plan.target.tensors.push_back({{"t", DType::kU8, target_shape}, ChunkList(2), Encoding::kRaw});
  plan.tensors.push_back({{view}, 0.0, 0.0});

  std::vector<int> hits(static_cast<std::size_t>(target_shape[0] * target_shape[1]));
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, Box::whole(target_shape), pieces);
  for (const SourcePiece& piece : pieces) {
    for (std::int64_t r = 0; r < piece.box.shape[0]; ++r) {
      for (std::int64_t c = 0; c < piece.box.shape[1]; ++c) {
        const Dims at{piece.box.origin[0] + r, piece.box.origin[1] + c};
        ++hits[static_cast<std::size_t>(at[0] * target_shape[1] + at[1])];
        const auto [row, column] = coordinate(
            plan.source.tensors[0], piece.file,
            piece.offset + static_cast<std::uint64_t>(r * piece.strides[0] + c * piece.strides[1]));
        Dims expected = view.source_origin;
        for (int axis = 0; axis < 2; ++axis) {
          expected[static_cast<int>(view.axis[axis])] +=
              (at[axis] - view.box.origin[axis]) * view.step[axis];
        }
        RC_ASSERT(row == expected[0]);
        RC_ASSERT(column == expected[1]);
      }
    }
  }
  for (std::int64_t r = 0; r < target_shape[0]; ++r) {
    for (std::int64_t c = 0; c < target_shape[1]; ++c) {
      const bool inside = r >= view.box.origin[0];
      RC_ASSERT(hits[static_cast<std::size_t>(r * target_shape[1] + c)] == (inside ? 1 : 0));
    }
  }
}

TEST(Lowering, SearchesManyViewsAndFixesSourceAxes) {
  // Twenty layers stacked out of one [20, 4] source, in reverse order, as one-axis rows.
  Plan plan;
  plan.source.tensors.push_back(grid_tensor({20, 4}, {20, 1}));
  plan.target.tensors.push_back({{"t", DType::kU8, {20, 4}}, ChunkList(2), Encoding::kRaw});
  TensorRecipe recipe;
  for (std::int64_t row = 0; row < 20; ++row) {
    recipe.views.push_back({Box{{row, 0}, {1, 4}}, 0, {19 - row, 0}, {-1, 1}, {1, 1}});
  }
  plan.tensors.push_back(recipe);
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, Box{{3, 1}, {2, 2}}, pieces);
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].file, 16U);
  EXPECT_EQ(pieces[1].file, 15U);
  EXPECT_EQ(pieces[0].offset, 1U);
  EXPECT_EQ(pieces[0].box, (Box{{3, 1}, {1, 2}}));
}

TEST(Lowering, ReadsOneOfTwoReplicas) {
  Plan plan;
  StoredTensor source{{"s", DType::kU8, {4}}, ChunkList(1), Encoding::kRaw};
  source.chunks.push_back({Box{{0}, {4}}, 0, {0, 4}, {}});
  source.chunks.push_back({Box{{0}, {4}}, 1, {0, 4}, {}});
  plan.source.tensors.push_back(source);
  plan.target.tensors.push_back({{"t", DType::kU8, {4}}, ChunkList(1), Encoding::kRaw});
  plan.tensors.push_back({{{Box{{0}, {4}}, 0, {0}, {0}, {1}}}, std::nullopt, 0.0});
  std::vector<SourcePiece> pieces;
  Lowering(plan).lower(0, Box{{0}, {4}}, pieces);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].file, 0U);
}

}  // namespace
}  // namespace shardwright
