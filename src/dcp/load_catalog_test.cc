// SPDX-License-Identifier: Apache-2.0
#include "dcp/load_catalog.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <string>
#include <utility>
#include <vector>

#include "dcp/dcp_metadata.h"

namespace shardwright {
namespace {

// Two rows, each in a file of its own.
StoredTensor two_rows(std::string name, std::uint32_t file, std::uint64_t begin = 0) {
  StoredTensor tensor{{std::move(name), DType::kF32, {2, 4}}, ChunkList(2), Encoding::kTorchItem};
  for (const std::uint32_t row : {0U, 1U}) {
    tensor.chunks.push_back({{{row, 0}, {1, 4}}, file + row, {begin + 1000 * row, 900}, {}});
  }
  return tensor;
}

// The first row only.
StoredTensor one_row(std::string name, std::uint32_t file) {
  StoredTensor tensor{{std::move(name), DType::kF32, {2, 4}}, ChunkList(2), Encoding::kTorchItem};
  tensor.chunks.push_back({{{0, 0}, {1, 4}}, file, {5000, 900}, {}});
  return tensor;
}

Result<LoadCatalog> load_of(Catalog catalog) {
  catalog.files = {"__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp"};
  return LoadCatalog::read(encode_dcp_metadata(catalog).value(), ".metadata");
}

std::size_t chunks_found(const LoadCatalog& load, std::string_view name) {
  const auto found = load.find(name);
  return found ? load.catalog().tensors[*found].chunks.size() : 0;
}

TEST(LoadCatalog, ACopyIsFoundByItsNameAndAnyByTheTensors) {
  Catalog catalog;
  catalog.tensors = {two_rows("w.__tp_replica_0", 0), two_rows("w.__tp_replica_1", 2),
                     two_rows("plain", 0, 8000)};
  const LoadCatalog load = load_of(std::move(catalog)).value();
  EXPECT_EQ(load.listed(), 2);
  EXPECT_EQ(chunks_found(load, "w"), 4);
  EXPECT_EQ(chunks_found(load, "w.__tp_replica_1"), 2);
  // No rank 7 saved: any copy serves, and of what has none the tensor.
  EXPECT_EQ(load.find("w.__tp_replica_7"), load.find("w"));
  EXPECT_EQ(load.find("plain.__tp_replica_1"), load.find("plain"));
  EXPECT_EQ(load.find("other"), std::nullopt);
  EXPECT_EQ(load.find("other.__tp_replica_0"), std::nullopt);
  EXPECT_EQ(load.tensor_name("w.__tp_replica_1"), "w");
  EXPECT_EQ(load.tensor_name("w"), "w");
  EXPECT_EQ(load.tensor_name("other"), std::nullopt);
}

TEST(LoadCatalog, AShadowServesAndACopyThatLacksSomethingDoesNotAlone) {
  Catalog catalog;
  catalog.tensors = {two_rows("w.__tp_replica_0", 0), one_row("w.__tp_replica_1", 2),
                     one_row("__shadow_3__w.__tp_replica_0", 3), one_row("v", 0),
                     two_rows("__shadow_3__v", 2)};
  const LoadCatalog load = load_of(std::move(catalog)).value();
  EXPECT_EQ(chunks_found(load, "w"), 4);
  EXPECT_EQ(chunks_found(load, "w.__tp_replica_0"), 3);
  EXPECT_EQ(load.find("w.__tp_replica_1"), load.find("w"));
  EXPECT_EQ(chunks_found(load, "v"), 3);
}

TEST(LoadCatalog, RefusesAnItemThatTwoTensorsName) {
  Catalog catalog;
  catalog.tensors = {two_rows("v", 0), two_rows("w", 0)};
  const auto load = load_of(std::move(catalog));
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code, Code::kMetadataCorrupt);
}

TEST(LoadCatalog, ObjectsAreTensorsOfBytes) {
  Catalog catalog;
  catalog.tensors = {two_rows("w", 0)};
  catalog.objects = {{"step/shard_0_1", 1, {7000, 123}}};
  const LoadCatalog load = load_of(std::move(catalog)).value();
  EXPECT_EQ(load.objects(), std::vector<std::string>{"step/shard_0_1"});
  const auto found = load.find_object("step/shard_0_1").value();
  ASSERT_TRUE(found);
  const StoredTensor& bytes = load.catalog().tensors[*found];
  EXPECT_EQ(bytes.desc.shape, (Dims{123}));
  EXPECT_EQ(bytes.chunks.range(0).offset, 7000);
  EXPECT_EQ(load.find("step/shard_0_1"), std::nullopt);
  EXPECT_EQ(load.find_object("w").value(), std::nullopt);
  EXPECT_EQ(load.listed(), 1);
}

TEST(LoadCatalog, ObjectsAreDecodedWithinTheAllowanceOfTheirFile) {
  const auto packed = [](const std::string& bytes) {
    std::string out(ZSTD_compressBound(bytes.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
    return out;
  };
  Catalog catalog;
  catalog.tensors = {two_rows("w", 0)};
  catalog.objects = {{"step", 0, {2000, 20}}, {"rng", 0, {2020, 30}}};
  const LoadCatalog load = load_of(std::move(catalog)).value();
  const std::vector<std::uint32_t> both = {load.find_object("step").value().value(),
                                           load.find_object("rng").value().value()};
  EXPECT_FALSE(load.is_compressed(both[0]));
  const auto decoded = load.decode(both, {packed("forty"), packed(packed("two"))});
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(*decoded, (std::vector<std::string>{"forty", "two"}));
  // Each of them would do, together they are too much.
  const std::string half(40 << 20, '\0');
  const auto bomb = load.decode(both, {packed(half), packed(half)});
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, Code::kLimit);
  EXPECT_NE(bomb.error().message.find("__0_0.distcp: object rng"), std::string::npos);
  const auto broken = load.decode(both, {packed("forty"), "no frame"});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Code::kItemTransformed);
}

}  // namespace
}  // namespace shardwright
