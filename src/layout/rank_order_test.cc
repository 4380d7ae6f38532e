// SPDX-License-Identifier: Apache-2.0
#include "layout/rank_order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardwright {
namespace {

// A tensor whose pieces, from the first row on, were written by these ranks; each has two columns.
struct Written {
  Catalog catalog;
  StoredTensor tensor;
};

Written written_by(const std::vector<std::int64_t>& ranks, std::int64_t columns = 1) {
  Written written;
  const auto pieces = static_cast<std::int64_t>(ranks.size());
  written.tensor.desc = {"w", DType::kF32, {pieces / columns * 3, columns * 2}};
  written.tensor.chunks = ChunkList(2);
  for (std::int64_t i = 0; i < pieces; ++i) {
    written.catalog.files.push_back("step/__" + std::to_string(ranks[static_cast<std::size_t>(i)]) +
                                    "_0.distcp");
    Chunk chunk;
    chunk.box = {{i / columns * 3, i % columns * 2}, {3, 2}};
    chunk.file = static_cast<std::uint32_t>(i);
    written.tensor.chunks.push_back(chunk);
  }
  return written;
}

std::optional<FsdpOrder> order_of(const Written& written, const MergedRanks& ranks) {
  return order_of_ranks(written.catalog, written.tensor, ranks);
}

TEST(RankOrder, IsWhatTheWritersSay) {
  // Two FSDP ranks of two experts' ranks each: rank f·2+o.
  EXPECT_EQ(order_of(written_by({0, 1, 2, 3}), {2, 1}), FsdpOrder::kOutside);
  EXPECT_EQ(order_of(written_by({0, 2, 1, 3}), {2, 1}), FsdpOrder::kInside);
  EXPECT_EQ(order_of(written_by({1, 2, 0, 3}), {2, 1}), std::nullopt);
  // The second pipeline stage.
  EXPECT_EQ(order_of(written_by({4, 6, 5, 7}), {2, 1}), FsdpOrder::kInside);
  // Where one of the sizes is 1, both orders are one.
  EXPECT_EQ(order_of(written_by({0, 1, 2, 3}), {1, 1}), FsdpOrder::kOutside);
  EXPECT_EQ(order_of(written_by({0, 1, 2, 3}), {4, 1}), FsdpOrder::kOutside);
}

TEST(RankOrder, LeavesColumnsOut) {
  // FSDP 2 x EP 2 x ETP 2, and ETP has the columns: rank (f·2+e)·2+t.
  EXPECT_EQ(order_of(written_by({0, 1, 4, 5, 2, 3, 6, 7}, 2), {4, 2}), FsdpOrder::kInside);
  EXPECT_EQ(order_of(written_by({1, 0, 5, 4, 3, 2, 7, 6}, 2), {4, 2}), FsdpOrder::kInside);
  EXPECT_EQ(order_of(written_by({0, 1, 2, 3, 4, 5, 6, 7}, 2), {4, 2}), FsdpOrder::kOutside);
}

TEST(RankOrder, NeedsTorchsFileNames) {
  EXPECT_EQ(rank_of_file("a/__12_3.distcp"), 12);
  for (const char* name : {"12_3.distcp", "__x_0.distcp", "__1.metadata", "__-1_0.distcp", "__"}) {
    EXPECT_EQ(rank_of_file(name), std::nullopt) << name;
  }
  Written written = written_by({0, 2, 1, 3});
  written.catalog.files[2] = "part.distcp";
  EXPECT_EQ(order_of(written, {2, 1}), std::nullopt);
}

}  // namespace
}  // namespace shardwright
