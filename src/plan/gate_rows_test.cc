// SPDX-License-Identifier: Apache-2.0
#include "plan/gate_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Rows = std::vector<std::int64_t>;

const std::string kFc1 = "decoder.layers.0.mlp.experts.experts.3.linear_fc1.weight";
const std::string kState = "optimizer.state.exp_avg." + kFc1;

StoredGates experts(std::int64_t rows, std::int64_t ranks) {
  const InterleavedGates gates{.experts = {rows, ranks}, .shared_experts = {}};
  return {gates, gates};
}

// A tensor of such a shape, and the draft that has all of it as it is.
std::pair<Catalog, std::vector<DraftTensor>> as_it_is(const std::string& name, const Dims& shape) {
  Catalog catalog;
  catalog.tensors.push_back({{name, DType::kBF16, shape}, ChunkList(shape.size())});
  return {catalog, draft_identity(catalog, {})};
}

// Per row of a target the row that it reads.
Rows rows_read(const DraftTensor& draft) {
  const int axis = axis_of_rows(draft.desc);
  Rows rows(static_cast<std::size_t>(draft.desc.shape[axis]), -1);
  for (const TensorView& view : draft.recipe.views) {
    for (std::int64_t i = 0; i < view.box.shape[axis]; ++i) {
      auto& row = rows[static_cast<std::size_t>(view.box.origin[axis] + i)];
      EXPECT_EQ(row, -1) << "twice";
      row = view.source_origin[axis] + i * view.step[axis];
    }
  }
  return rows;
}

Rows moved(const std::string& name, const Dims& shape, const StoredGates& from,
           const StoredGates& to) {
  auto [catalog, drafts] = as_it_is(name, shape);
  EXPECT_TRUE(move_gates(catalog, from, to, drafts));
  return rows_read(drafts[0]);
}

// The gate's rows are 0 to 3, stored where the blocks of two have them.
TEST(MoveGates, PutsTheGateFirst) {
  EXPECT_THAT(moved(kFc1, {8, 3}, experts(2, 1), {}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(moved(kState, {8, 3}, experts(2, 1), {}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

// One rank: g0 g1 u0 u1 ... g6 g7 u6 u7. The first of two ranks has blocks of g0 to g3, put
// together by halves.
TEST(MoveGates, FollowsTheRanksOfEachSide) {
  EXPECT_THAT(moved(kFc1, {16, 3}, experts(2, 1), experts(2, 2)),
              ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
  const Rows there = moved(kFc1, {16, 3}, experts(2, 1), experts(2, 4));
  const Rows back = moved(kFc1, {16, 3}, experts(2, 4), experts(2, 1));
  for (std::size_t i = 0; i < there.size(); ++i) {
    EXPECT_EQ(back[static_cast<std::size_t>(there[i])], static_cast<std::int64_t>(i));
  }
}

TEST(MoveGates, LeavesWhatIsAlike) {
  auto [catalog, drafts] = as_it_is(kFc1, {16, 3});
  ASSERT_TRUE(move_gates(catalog, experts(2, 2), experts(2, 2), drafts));
  EXPECT_EQ(drafts[0].recipe.views.size(), 1U);
}

TEST(MoveGates, MovesStacksAndBiasesOfAllExpertsAtOnce) {
  const std::string stack = "decoder.layers.mlp.experts.experts.linear_fc1.";
  auto [catalog, drafts] = as_it_is(stack + "weight", {5, 4, 8, 3});
  ASSERT_TRUE(move_gates(catalog, experts(2, 1), {}, drafts));
  EXPECT_THAT(rows_read(drafts[0]), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_EQ(drafts[0].recipe.views[0].box, (Box{{0, 0, 0, 0}, {5, 4, 2, 3}}));
  EXPECT_THAT(moved(stack + "bias", {5, 4, 8}, experts(2, 1), {}),
              ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

// Numbers of a flattened state are no rows.
TEST(MoveGates, LeavesStatesOfOtherShapes) {
  auto [catalog, drafts] = as_it_is(kState, {8});
  ASSERT_TRUE(move_gates(catalog, experts(2, 1), {}, drafts));
  EXPECT_EQ(drafts[0].recipe.views.size(), 1U);
}

TEST(MoveGates, TellsStatesFromWeights) {
  const StoredGates bridge{{}, {.experts = {2, 1}, .shared_experts = {}}};
  EXPECT_THAT(moved(kFc1, {8, 3}, bridge, {}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(moved(kState, {8, 3}, bridge, {}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(MoveGates, RefusesWhatIsNoWholeBlocks) {
  auto [catalog, drafts] = as_it_is(kFc1, {8, 3});
  const Status status = move_gates(catalog, experts(2, 1), experts(2, 4), drafts);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNotDivisible);
  EXPECT_THAT(status.error().message, HasSubstr("8 rows on 4 ranks"));
}

}  // namespace
}  // namespace shardwright
