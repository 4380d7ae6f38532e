// SPDX-License-Identifier: Apache-2.0
#include "layout/dtensor_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>

#include "layout/device_mesh.h"
#include "layout/merged_placement.h"
#include "layout/merged_shards.h"
#include "layout/name_placement.h"
#include "layout/strided_shards.h"
#include "testing/golden_files.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

const MeshPlacement kReplicate = MeshPlacement::replicate();
const MeshPlacement kShard0 = MeshPlacement::shard(0);
const MeshPlacement kShard1 = MeshPlacement::shard(1);

std::vector<std::int64_t> shard_sizes(std::int64_t rows, std::int64_t ranks) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    sizes.push_back(chunk_of({0, rows}, ranks, rank).rows);
  }
  return sizes;
}

TEST(ChunkOf, IsTorchChunk) {
  using testing::ElementsAre;
  EXPECT_THAT(shard_sizes(5, 4), ElementsAre(2, 2, 1, 0));
  EXPECT_THAT(shard_sizes(10, 4), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(shard_sizes(9, 4), ElementsAre(3, 3, 3, 0));
  EXPECT_THAT(shard_sizes(3, 8), ElementsAre(1, 1, 1, 0, 0, 0, 0, 0));
}

TEST(LocalBox, EmptyShardsBeginAtTheEnd) {
  const auto box = local_box({5, 3}, {4}, {kShard0}, {3});
  ASSERT_TRUE(box) << box.error().text();
  EXPECT_EQ(*box, (Box{{5, 0}, {0, 3}}));
}

TEST(LocalBox, AxesCutFromLeftToRight) {
  const auto box = local_box({10}, {2, 2}, {kShard0, kShard0}, {1, 1});
  ASSERT_TRUE(box) << box.error().text();
  EXPECT_EQ(*box, (Box{{8}, {2}}));
}

// FSDP over TP: the strided axis cuts last.
TEST(LocalBox, StridedAxesCutAfterTheirFactor) {
  const MeshPlacements placements = {MeshPlacement::strided_shard(0, 2), kShard0};
  const auto at = [&](std::int64_t dp, std::int64_t tp) {
    return local_box({8}, {2, 2}, placements, {dp, tp}).value();
  };
  EXPECT_EQ(at(0, 0), (Box{{0}, {2}}));
  EXPECT_EQ(at(0, 1), (Box{{4}, {2}}));
  EXPECT_EQ(at(1, 0), (Box{{2}, {2}}));
  EXPECT_EQ(at(1, 1), (Box{{6}, {2}}));
}

// Every line is what torch's DTensor gives the ranks of a mesh: `2x3 RS 7 0+3 3+3 6+1 0+3 …`.
TEST(LocalBox, IsWhatTorchGivesEachRank) {
  std::istringstream lines(read_golden("dcp/placements.txt"));
  std::string line;
  std::size_t compared = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string mesh_text;
    std::string kinds;
    std::int64_t length = 0;
    words >> mesh_text >> kinds >> length;
    Dims mesh;
    std::int64_t factor = 1;
    std::replace(mesh_text.begin(), mesh_text.end(), 'x', ' ');
    std::istringstream sizes(mesh_text);
    for (std::int64_t size = 0; sizes >> size;) mesh.push_back(size);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] == 'S') factor *= mesh[static_cast<int>(i)];
    }
    MeshPlacements placements;
    for (const char kind : kinds) {
      placements.push_back(kind == 'R'   ? kReplicate
                           : kind == 'S' ? kShard0
                                         : MeshPlacement::strided_shard(0, factor));
    }
    const DeviceMesh ranks = DeviceMesh::make(mesh).value();
    for (const std::int64_t rank : ranks.ranks()) {
      std::int64_t offset = 0;
      std::int64_t rows = 0;
      char plus = 0;
      words >> offset >> plus >> rows;
      const Result<Box> box = local_box({length}, mesh, placements, *ranks.coordinate_of(rank));
      ASSERT_TRUE(box) << line << ": " << box.error().text();
      ASSERT_EQ(*box, (Box{{offset}, {rows}})) << line << " rank " << rank;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10'000U);
}

TEST(LocalBox, RefusesWhatDoesNotFit) {
  const auto code = [](const auto& result) { return result ? Code{} : result.error().code; };
  EXPECT_EQ(code(local_box({8}, {2}, {kShard1}, {0})), Code::kShapeMismatch);
  EXPECT_EQ(code(local_box({8}, {2, 2}, {kShard0}, {0, 0})), Code::kShapeMismatch);
  EXPECT_EQ(code(local_box({8}, {2}, {kShard0}, {2})), Code::kShapeMismatch);
  EXPECT_EQ(code(local_box({8}, {0}, {kShard0}, {0})), Code::kShapeMismatch);
  const auto strided =
      local_box({8}, {2, 2}, {MeshPlacement::strided_shard(0, 4), kShard0}, {0, 0});
  EXPECT_EQ(code(strided), Code::kShapeMismatch);
  EXPECT_THAT(strided.error().message, HasSubstr("stride factor of 4"));
}

TEST(GlobalShape, CountsEveryShardingAxis) {
  EXPECT_EQ(
      global_shape_of({32, 64}, {1, 4, 2, 1}, {kReplicate, kShard0, kShard0, kShard0}).value(),
      (Dims{256, 64}));
  EXPECT_EQ(
      global_shape_of({32, 16}, {1, 4, 2, 1}, {kReplicate, kShard0, kShard0, kShard1}).value(),
      (Dims{256, 16}));
  EXPECT_FALSE(global_shape_of({std::int64_t{1} << 62}, {4}, {kShard0}));
}

TEST(ChunkOf, TheLargestExtent) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(chunk_of({0, kMost}, 2, 1), (ShardRows{kMost / 2 + 1, kMost / 2}));
  EXPECT_EQ(chunk_of({0, kMost}, 12, 11).offset + chunk_of({0, kMost}, 12, 11).rows, kMost);
  EXPECT_EQ(chunk_of({0, 0}, 3, 2), (ShardRows{0, 0}));
}

TEST(AgreedShape, SaysWhichRanksDisagree) {
  const std::vector<ReportedShape> shapes = {{1, {8, 4}}, {3, {8, 4}}, {5, {6, 4}}};
  const auto agreed = agreed_shape("layers.0.w", shapes);
  ASSERT_FALSE(agreed);
  EXPECT_THAT(agreed.error().message,
              HasSubstr("tensor layers.0.w: found a global shape of (6, 4)"));
  EXPECT_THAT(agreed.error().message, HasSubstr("on rank 5 and (8, 4) on rank 1"));
  EXPECT_EQ(agreed_shape("w", std::span(shapes).first(2)).value(), (Dims{8, 4}));
}

TEST(DeviceMesh, KnowsItsLines) {
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 2, 1}).value();
  EXPECT_TRUE(mesh.has_line(1, std::vector<std::int64_t>{0, 2, 4, 6}));
  EXPECT_TRUE(mesh.has_line(1, std::vector<std::int64_t>{1, 3, 5, 7}));
  EXPECT_TRUE(mesh.has_line(2, std::vector<std::int64_t>{4, 5}));
  EXPECT_FALSE(mesh.has_line(1, std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_FALSE(mesh.has_line(1, std::vector<std::int64_t>{2, 4, 6, 0}));
  EXPECT_EQ(mesh.coordinate_of(5), (Dims{0, 2, 1, 0}));
  EXPECT_EQ(mesh.coordinate_of(8), std::nullopt);
  EXPECT_FALSE(DeviceMesh::make({2, 2}, {0, 1, 2}));
  EXPECT_FALSE(DeviceMesh::make({2}, {1, 1}));
  EXPECT_FALSE(DeviceMesh::make({0}));
}

TEST(DeviceMesh, OfARun) {
  const RunMeshSizes run{8, 1, 1, 2, 4, 1};
  EXPECT_EQ(dense_mesh(run).value().sizes(), (Dims{1, 4, 1, 2}));
  EXPECT_EQ(expert_mesh(run).value().sizes(), (Dims{1, 2, 4, 1}));
  EXPECT_FALSE(expert_mesh({8, 1, 1, 2, 3, 1}));
  EXPECT_FALSE(dense_mesh({8, 1, 0, 2, 1, 1}));
}

FsdpParameter fsdp_parameter(std::vector<std::int64_t> ranks, const Dims& local,
                             const Dims& logical) {
  const Dims sizes{static_cast<std::int64_t>(ranks.size())};
  return {DeviceMesh::make(sizes, std::move(ranks)).value(), {kShard0}, local, logical};
}

TEST(MergePlacement, PutsTheFsdpShardOnTheExpertDataAxis) {
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 2, 1}).value();
  const FsdpParameter parameter = fsdp_parameter({0, 2, 4, 6}, {32, 64}, {128, 64});
  const auto merged =
      merge_placement("experts.fc1.weight0", mesh, {kReplicate, kReplicate, kShard0, kShard0},
                      parameter, FsdpOrder::kOutside);
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(merged->placements, (MeshPlacements{kReplicate, kShard0, kShard0, kShard0}));
  EXPECT_EQ(merged->mesh.sizes(), mesh.sizes());
  EXPECT_EQ(merged->shape, (Dims{256, 64}));
  EXPECT_EQ(merged->strides, (Dims{64, 1}));
}

TEST(MergePlacement, LeavesTheSecondAxisToTensorParallelism) {
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 2, 1}).value();
  const FsdpParameter parameter = fsdp_parameter({0, 2, 4, 6}, {32, 16}, {128, 16});
  const auto merged =
      merge_placement("experts.fc2.weight0", mesh, {kReplicate, kReplicate, kShard0, kShard1},
                      parameter, FsdpOrder::kOutside);
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(merged->placements, (MeshPlacements{kReplicate, kShard0, kShard0, kShard1}));
  EXPECT_EQ(merged->shape, (Dims{256, 16}));
}

TEST(MergePlacement, KeepsTheParametersOwnMeshWhereNothingShards) {
  const DeviceMesh alone = DeviceMesh::make({1, 1, 1, 1}).value();
  const FsdpParameter parameter = fsdp_parameter({0, 2, 4, 6}, {2}, {8});
  const auto sized_one = merge_placement("norm", alone, {kReplicate, kReplicate, kShard0, kShard0},
                                         parameter, FsdpOrder::kInside);
  ASSERT_TRUE(sized_one) << sized_one.error().text();
  EXPECT_EQ(sized_one->shape, (Dims{8}));
  EXPECT_EQ(sized_one->strides, (Dims{1}));
  EXPECT_EQ(sized_one->placements, (MeshPlacements{kShard0}));
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 2, 1}).value();
  const auto replicated =
      merge_placement("norm", mesh, MeshPlacements(4), parameter, FsdpOrder::kInside);
  ASSERT_TRUE(replicated) << replicated.error().text();
  EXPECT_EQ(replicated->mesh.sizes(), (Dims{4}));
}

// An empty local shard of a replicated parameter has the shape that FSDP gives, not 0 rows.
TEST(MergePlacement, KeepsEmptyShardsLegal) {
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 1, 1}).value();
  const auto merged = merge_placement("hc_head.scale", mesh, MeshPlacements(4),
                                      fsdp_parameter({0, 1, 2, 3}, {0}, {1}), FsdpOrder::kInside);
  ASSERT_TRUE(merged) << merged.error().text();
  EXPECT_EQ(merged->shape, (Dims{1}));
}

TEST(MergePlacement, RefusesFsdpThatIsNoLine) {
  const DeviceMesh mesh = DeviceMesh::make({1, 4, 2, 1}).value();
  const MeshPlacements placements = {kReplicate, kReplicate, kShard0, kShard0};
  const auto flattened = merge_placement("experts.fc1.weight0", mesh, placements,
                                         fsdp_parameter({0, 1, 2, 3, 4, 5, 6, 7}, {4, 4}, {32, 4}),
                                         FsdpOrder::kInside);
  ASSERT_FALSE(flattened);
  EXPECT_EQ(flattened.error().code, Code::kComponentLayout);
  EXPECT_THAT(flattened.error().message, HasSubstr("parameter experts.fc1.weight0"));
  FsdpParameter hybrid = fsdp_parameter({0, 2, 4, 6}, {4, 4}, {8, 4});
  hybrid.mesh = DeviceMesh::make({2, 2}, {0, 2, 4, 6}).value();
  for (const MeshPlacement& outer : {kReplicate, kShard0}) {
    hybrid.placements = {outer, kShard0};
    const auto refused = merge_placement("w", mesh, placements, hybrid, FsdpOrder::kInside);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kComponentLayout);
    EXPECT_THAT(refused.error().message, HasSubstr("parameter w"));
  }
  FsdpParameter beyond = fsdp_parameter({0, 2, 4, 6}, {4, 4}, {16, 4});
  beyond.placements = {MeshPlacement::shard(2)};
  EXPECT_FALSE(merge_placement("w", mesh, placements, beyond, FsdpOrder::kInside));
}

// EP 2 x ETP 2 x FSDP 3 over 5 rows each: ranks hold 2, 2 and 1, in the order of the whole.
TEST(MergePlacement, KeepsTheCutOfFsdpInside) {
  const DeviceMesh mesh = DeviceMesh::make({1, 3, 2, 2}).value();
  const MeshPlacements placements = {kReplicate, kReplicate, kShard0, kShard0};
  const std::array<std::int64_t, 3> rows = {2, 2, 1};
  std::vector<std::int64_t> origins;
  for (std::int64_t rank = 0; rank < 12; ++rank) {
    const std::int64_t line = rank % 4;
    const Dims local{rows[static_cast<std::size_t>(rank / 4)], 7};
    const FsdpParameter parameter = fsdp_parameter({line, line + 4, line + 8}, local, {5, 7});
    const auto merged = merge_placement("w", mesh, placements, parameter, FsdpOrder::kInside);
    ASSERT_TRUE(merged) << merged.error().text();
    EXPECT_EQ(merged->placements,
              (MeshPlacements{kReplicate, MeshPlacement::strided_shard(0, 4), kShard0, kShard0}));
    EXPECT_EQ(merged->shape, (Dims{20, 7}));
    const auto box = placed_box("w", *merged, rank, local);
    ASSERT_TRUE(box) << box.error().text();
    EXPECT_EQ((*box)->shape, local);
    origins.push_back((*box)->origin[0]);
    EXPECT_FALSE(placed_box("w", *merged, rank, {local[0] + 1, 7}));
    const auto outside = merge_placement("w", mesh, placements, parameter, FsdpOrder::kOutside);
    ASSERT_FALSE(outside);
    EXPECT_THAT(outside.error().message, HasSubstr("disagree about the global shape"));
  }
  EXPECT_THAT(origins, testing::ElementsAre(0, 5, 10, 15, 2, 7, 12, 17, 4, 9, 14, 19));
}

// Axes that shard the other tensor axis do not count, and none to the right leaves a plain shard.
TEST(MergePlacement, CountsTheAxesToTheRightThatCutTheSameRows) {
  const DeviceMesh mesh = DeviceMesh::make({1, 2, 2, 2}).value();
  const FsdpParameter parameter = fsdp_parameter({0, 4}, {3, 8}, {6, 8});
  const auto factor = [&](const MeshPlacements& placements) {
    const auto merged = merge_placement("w", mesh, placements, parameter, FsdpOrder::kInside);
    return merged ? to_string(merged->placements) : merged.error().message;
  };
  EXPECT_EQ(factor({kReplicate, kReplicate, kShard0, kShard1}),
            "[Replicate, StridedShard(0, 2), Shard(0), Shard(1)]");
  EXPECT_EQ(factor({kReplicate, kReplicate, kReplicate, kShard1}),
            "[Replicate, Shard(0), Replicate, Shard(1)]");
}

TEST(PlacedBox, OfARankOutsideOfTheMesh) {
  const DeviceMesh mesh = DeviceMesh::make({2}, {4, 6}).value();
  const auto placement = place_plain("w", mesh, {kShard0}, {3});
  ASSERT_TRUE(placement);
  EXPECT_EQ(placed_box("w", *placement, 6, {3}).value(), (Box{{3}, {3}}));
  EXPECT_EQ(placed_box("w", *placement, 5, {3}).value(), std::nullopt);
}

TEST(CopyBackRule, DoesNothingForEmptyTargets) {
  EXPECT_EQ(copy_back("w", {0, 4}, {3, 4}).value(), CopyBack::kNothing);
  EXPECT_EQ(copy_back("w", {3, 4}, {3, 4}).value(), CopyBack::kCopy);
  EXPECT_FALSE(copy_back("w", {3, 4}, {2, 4}));
}

// FSDP cut what each expert rank held, so rows of one expert are scattered with FSDP's index first.
TEST(MergedPieces, UndoTheOrderOfTheBlocks) {
  const Dims stored{16, 3};
  const MergedSizes sizes{2, 2, 2};
  ASSERT_TRUE(divides_evenly(stored, sizes, 0));
  EXPECT_EQ(logical_shape(stored, sizes), (Dims{8, 3}));
  std::vector<std::vector<std::int64_t>> rows(2, std::vector<std::int64_t>(8, -1));
  for (const MergedPiece& piece : merged_pieces(stored, sizes, 0)) {
    for (std::int64_t row = 0; row < piece.stored.shape[0]; ++row) {
      rows[static_cast<std::size_t>(piece.outer)]
          [static_cast<std::size_t>(piece.logical.origin[0] + row)] = piece.stored.origin[0] + row;
    }
  }
  // Rank (f, o, i) stored block (f*2+o)*2+i of two rows; its rows are (i*2+f) of expert o.
  EXPECT_THAT(rows[0], testing::ElementsAre(0, 1, 8, 9, 2, 3, 10, 11));
  EXPECT_THAT(rows[1], testing::ElementsAre(4, 5, 12, 13, 6, 7, 14, 15));
  EXPECT_FALSE(divides_evenly({15, 3}, sizes, 0));
  EXPECT_FALSE(divides_evenly({16, 3}, sizes, 1));
}

TEST(TrueShardRows, AreThoseOfTensorParallelismFirst) {
  // FSDP 3 x TP 2 over 7 rows as torch 2.13 describes it, and what the items hold.
  const std::vector<ShardClaim> claims = {{0, 2, 2}, {4, 1, 1}, {2, 2, 2},
                                          {5, 1, 1}, {6, 1, 0}, {7, 0, 1}};
  const auto rows = true_shard_rows(7, claims);
  ASSERT_TRUE(rows);
  EXPECT_THAT(*rows, testing::ElementsAre(ShardRows{0, 2}, ShardRows{4, 1}, ShardRows{2, 2},
                                          ShardRows{5, 1}, ShardRows{7, 0}, ShardRows{6, 1}));
  // The empty item without rows: they were lost.
  std::vector<ShardClaim> lost = claims;
  lost.back().stored_rows = 0;
  EXPECT_FALSE(true_shard_rows(7, lost));
  std::vector<ShardClaim> foreign = claims;
  foreign[1].stored_rows = 3;
  EXPECT_FALSE(true_shard_rows(7, foreign));
  EXPECT_FALSE(true_shard_rows(7, {}));
  // FSDP 5 x TP 2 over 11 rows: two ranks with a row each pass for empty, and one item is left.
  const std::vector<ShardClaim> two = {{0, 2, 2}, {6, 1, 1}, {2, 2, 2},  {7, 1, 1}, {4, 2, 2},
                                       {8, 1, 1}, {9, 1, 0}, {10, 1, 0}, {11, 0, 1}};
  EXPECT_FALSE(true_shard_rows(11, two));
}

TEST(NamePlacement, TheFirstRuleWins) {
  PlacementRules rules;
  rules.experts = {{".experts."}, {}, {".shared_experts."}, {}};
  rules.rules = {{{{"fc1"}, {}, {}, {}}, true, -1, 0, 0},
                 {{{}, {}, {}, "hc_head."}, false, -1, -1, -1},
                 {{{}, {"embed", "head"}, {}, {}}, false, 0, -1, -1}};
  EXPECT_EQ(rules.placements_of("mlp.experts.fc1.weight0"),
            (MeshPlacements{kReplicate, kReplicate, kShard0, kShard0}));
  EXPECT_EQ(rules.placements_of("hc_head.hc_fn"), MeshPlacements(4));
  EXPECT_EQ(rules.placements_of("head.weight"),
            (MeshPlacements{kReplicate, kReplicate, kReplicate, kShard0}));
  EXPECT_EQ(rules.placements_of("mlp.experts.head"), MeshPlacements(4));
  EXPECT_EQ(rules.placements_of("norm.weight"), MeshPlacements(4));
  EXPECT_EQ(rules.placements_of("mlp.shared_experts.experts.fc1"), MeshPlacements(4));
}

}  // namespace
}  // namespace shardwright
