// SPDX-License-Identifier: Apache-2.0
#include "layout/group_plan.h"

#include <gtest/gtest.h>

#include <utility>

namespace shardwright {
namespace {

// Which of `copies`, one chunk each, a group of a tensor rank reads.
std::uint32_t usual_of(std::vector<StoredCopy> copies, std::int64_t tensor_rank) {
  StoredTensor stored{{"norm", DType::kF32, {4}}, ChunkList(1)};
  LoadNeeds needs;
  needs.groups.resize(1);
  for (std::uint32_t i = 0; i < copies.size(); ++i) {
    stored.chunks.push_back({Box{{0}, {4}}, i, {0, 16}, {}});
    needs.groups[0].copies.push_back(i);
    copies[i].chunks = 1;
  }
  const auto count = static_cast<std::uint32_t>(copies.size());
  stored.copies = std::move(copies);
  needs.ranks = LoadGroups({0, 1}, tensor_rank);
  needs.tensors.emplace_back().stored = &stored;
  return usual_copy(needs, 0, NeededShard{}, {0, count, 16});
}

TEST(UsualCopy, IsThatOfTheOwnTensorRankWhereverItStands) {
  const StoredCopy shadow{"__shadow_5__norm.__tp_replica_3", 3, true};
  const StoredCopy first{"norm.__tp_replica_1", 1};
  const StoredCopy second{"norm.__tp_replica_3", 3};
  const StoredCopy bare{"norm", std::nullopt};
  EXPECT_EQ(usual_of({shadow, first, second, bare}, 1), 1u);
  EXPECT_EQ(usual_of({shadow, first, second, bare}, 3), 2u);
  EXPECT_EQ(usual_of({shadow, first, second, bare}, 0), 3u);
  EXPECT_EQ(usual_of({first, second}, 2), 0u);
}

}  // namespace
}  // namespace shardwright
