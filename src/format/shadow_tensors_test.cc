// SPDX-License-Identifier: Apache-2.0
#include "format/shadow_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

StoredTensor tensor(std::string name, std::vector<std::int64_t> rows) {
  StoredTensor stored{{std::move(name), DType::kF32, {4, 2}}, ChunkList(2)};
  for (const std::int64_t row : rows) {
    stored.chunks.push_back({Box{{row, 0}, {2, 2}}, 0, {static_cast<std::uint64_t>(row), 16}, {}});
  }
  return stored;
}

std::vector<std::string> names(const Catalog& catalog) {
  std::vector<std::string> all;
  for (const StoredTensor& stored : catalog.tensors) all.push_back(stored.desc.name);
  return all;
}

TEST(ShadowName, IsARankAndATensor) {
  const auto name = parse_shadow_name("__shadow_13__a.weight");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->rank, "13");
  EXPECT_EQ(name->tensor, "a.weight");
  for (const char* other : {"a.weight", "__shadow___a", "__shadow_1_a", "__shadow_x__a",
                            "__shadow_1", "__shadow_1__", "a.__shadow_1__b"}) {
    EXPECT_FALSE(parse_shadow_name(other)) << other;
  }
}

TEST(ShadowTensors, BecomeReplicas) {
  Catalog catalog;
  catalog.tensors = {tensor("__shadow_1__a", {2}), tensor("a", {0, 2}), tensor("b", {0, 2}),
                     tensor("__shadow_3__a", {0, 2})};
  fold_shadows(catalog);
  EXPECT_THAT(names(catalog), testing::ElementsAre("a", "b"));
  const ChunkList& chunks = catalog.tensors[0].chunks;
  ASSERT_EQ(chunks.size(), 5U);
  EXPECT_EQ(chunks.range(0).offset, 0U);  // its own chunks stay the first
  EXPECT_EQ(chunks.range(2).offset, 2U);
  EXPECT_EQ(catalog.tensors[1].chunks.size(), 2U);
}

TEST(ShadowTensors, StayWhatTheyAreWhereTheyRepeatNothing) {
  StoredTensor wide = tensor("__shadow_1__b", {0});
  wide.desc.dtype = DType::kF64;
  Catalog catalog;
  catalog.tensors = {tensor("a", {0, 2}),
                     tensor("b", {0, 2}),
                     tensor("__shadow_1__a", {1}),
                     wide,
                     tensor("__shadow_1__nobody", {0}),
                     tensor("__shadow_0____shadow_0__", {0})};
  const std::vector<std::string> before = names(catalog);
  fold_shadows(catalog);
  EXPECT_EQ(names(catalog), before);
  EXPECT_EQ(catalog.tensors[0].chunks.size(), 2U);
}

}  // namespace
}  // namespace shardwright
