// SPDX-License-Identifier: Apache-2.0
#include "report/catalog_columns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StoredTensor stored(std::string name, Dims shape, const std::vector<std::pair<Box, int>>& chunks) {
  StoredTensor tensor{{std::move(name), DType::kBF16, shape}, ChunkList(shape.size())};
  for (const auto& [box, file] : chunks) {
    tensor.chunks.push_back({box, static_cast<std::uint32_t>(file), {0, 8}, {}});
  }
  return tensor;
}

// Two halves on two ranks, a replica on both, one with a hole.
Catalog halves() {
  const Box upper{{0, 0}, {2, 4}};
  const Box lower{{2, 0}, {2, 4}};
  const Box whole{{0, 0}, {4, 4}};
  Catalog catalog;
  catalog.files = {"__0_0.distcp", "__0_1.distcp", "__1_0.distcp", "common.pt"};
  catalog.tensors = {
      stored("layers.10.w", {4, 4}, {{upper, 0}, {lower, 2}}),
      stored("layers.9.w", {4, 4}, {{upper, 1}, {lower, 2}}),
      stored("norm", {4, 4}, {{whole, 0}, {whole, 2}}),
      stored("torn", {4, 4}, {{upper, 0}}),
  };
  catalog.objects = {{"rng", 3, {0, 100}}};
  return catalog;
}

TEST(CatalogColumns, SayWhoHoldsWhichBox) {
  const Catalog catalog = halves();
  const auto order = shown_order(catalog);
  EXPECT_THAT(order, ElementsAre(1, 0, 2, 3));
  const Json columns = catalog_columns(catalog, order);
  EXPECT_EQ(columns["holders"], Json({"rank 0", "rank 1", "common.pt"}));
  EXPECT_EQ(columns["shapes"], Json::parse("[[4,4]]"));
  // Both layers are cut alike and held alike, by whatever files of rank 0.
  EXPECT_EQ(columns["boxes"], Json::parse("[[0,0,2,4,2,0,2,4],[],[0,0,2,4]]"));
  EXPECT_EQ(columns["held"], Json::parse("[[0,1],[0]]"));
  EXPECT_EQ(columns["box"], Json::parse("[0,0,1,2]"));
  EXPECT_EQ(columns["holder"], Json::parse("[0,0,0,1]"));
  EXPECT_EQ(columns["layer"], Json::parse("[9,10,-1,-1]"));
  EXPECT_EQ(columns["objects"], Json::parse(R"({"count":1,"bytes":100})"));
  EXPECT_EQ(columns["without_boxes"], 0);
  ASSERT_THAT(columns["defects"], SizeIs(1));
  EXPECT_EQ(columns["defects"][0][0], 3);
  EXPECT_THAT(columns["defects"][0][1].get<std::string>(), HasSubstr("torn"));
}

// A checkpoint of many ranks is cut off where a page would become too large, and the page knows.
TEST(CatalogColumns, KeepSoManyBoxesOnly) {
  Catalog catalog;
  catalog.files = {"f"};
  for (std::int64_t i = 0; i < 100; ++i) {
    catalog.tensors.push_back(
        stored(fmt::format("t{}", i), {200}, {{{{0}, {i + 1}}, 0}, {{{i + 1}, {199 - i}}, 0}}));
  }
  const Json columns = catalog_columns(catalog, shown_order(catalog), {.most_chunk_numbers = 62});
  EXPECT_EQ(columns["without_boxes"], 90);
  EXPECT_THAT(columns["names"]["rest"], SizeIs(100));
  EXPECT_EQ(columns["box"][9], 9);
  EXPECT_EQ(columns["box"][10], -1);
  EXPECT_EQ(columns["holder"][10], -1);
}

TEST(NameColumn, SharesBeginningsButCutsNoCharacter) {
  const Json column = name_column({"layers.0.w", "layers.1.w", "层.0", "层.1", ""});
  EXPECT_EQ(column["shared"], Json::parse("[0,7,0,0,0]"));
  EXPECT_EQ(column["rest"], Json({"layers.0.w", "1.w", "层.0", "层.1", ""}));
}

TEST(Holders, AreRanksFoldersOfRanksOrFiles) {
  const Holders holders =
      holders_of({"__3_0.distcp", "__3_1.distcp", "mp_rank_00_001/model_optim_rng.pt",
                  "mp_rank_00_001/distrib_optim.pt", "model-00001.safetensors"});
  EXPECT_THAT(holders.labels, ElementsAre("rank 3", "mp_rank_00_001", "model-00001.safetensors"));
  EXPECT_THAT(holders.of_file, ElementsAre(0, 0, 1, 1, 2));
}

}  // namespace
}  // namespace shardwright
