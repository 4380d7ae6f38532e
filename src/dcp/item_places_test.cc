// SPDX-License-Identifier: Apache-2.0
#include "dcp/item_places.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kArchive = 1000;  // longer than what it holds

// A column of rows, two in each chunk.
StoredTensor column(std::string name, std::vector<Chunk> chunks) {
  StoredTensor stored{{std::move(name), DType::kF32, {4}}, ChunkList(1), Encoding::kTorchItem};
  for (const Chunk& chunk : chunks) stored.chunks.push_back(chunk);
  return stored;
}

Chunk rows(std::int64_t first, std::uint64_t offset, std::uint64_t length = kArchive,
           std::uint32_t file = 0) {
  return {Box{{first}, {2}}, file, {offset, length}, {}};
}

std::vector<std::string> wrong(std::vector<StoredTensor> tensors,
                               std::vector<StoredObject> objects = {}) {
  const Catalog catalog{{"__0_0.distcp", "__1_0.distcp"}, std::move(tensors), std::move(objects)};
  Defects defects(Defects::Policy::kCollect);
  EXPECT_TRUE(check_item_places(catalog, defects));
  std::vector<std::string> messages;
  for (const Error& error : defects.found()) {
    EXPECT_EQ(error.code, Code::kMetadataCorrupt);
    messages.push_back(error.message);
  }
  return messages;
}

TEST(ItemPlaces, AreAllTheirOwnInWhateverOrder) {
  EXPECT_THAT(wrong({column("b", {rows(0, 3000), rows(2, 0)}),
                     column("a", {rows(0, 1000), rows(2, 0, kArchive, 1)})},
                    {{"o", 0, {2000, 1000}}, {"p", 1, {1000, 1}}}),
              IsEmpty());
}

TEST(ItemPlaces, OfTwoTensorsAreNotOne) {
  EXPECT_THAT(
      wrong({column("b", {rows(0, 1000)}), column("a", {rows(0, 0), rows(2, 1000)})}),
      ElementsAre(HasSubstr("tensor b: chunk [0:2] and tensor a: chunk [2:4] share bytes of "
                            "__0_0.distcp from byte 1000 on")));
}

TEST(ItemPlaces, DoNotReachIntoOthers) {
  // What lies within the first one lies behind the second's end, too.
  EXPECT_THAT(wrong({column("a", {rows(0, 0, 5000)}), column("b", {rows(0, 1000)}),
                     column("c", {rows(0, 4000, 1001)}), column("d", {rows(0, 5001)})}),
              ElementsAre(HasSubstr("from byte 1000 on"), HasSubstr("from byte 4000 on")));
}

TEST(ItemPlaces, OfObjectsAreTheirOwn) {
  EXPECT_THAT(wrong({column("a", {rows(0, 0)})}, {{"o", 0, {999, 10}}, {"p", 0, {1009, 5}}}),
              ElementsAre(HasSubstr("tensor a: chunk [0:2] and object o share")));
  EXPECT_THAT(wrong({}, {{"o", 0, {0, 10}}, {"p", 0, {0, 10}}}),
              ElementsAre(HasSubstr("object o and object p share")));
}

TEST(ItemPlaces, MayBeSharedByEqualBoxesOfATensor) {
  EXPECT_THAT(wrong({column("a", {rows(0, 0), rows(0, 0)})}), IsEmpty());
  EXPECT_THAT(wrong({column("a", {rows(0, 0), rows(2, 0)})}),
              ElementsAre(HasSubstr("tensor a: chunk [0:2] and tensor a: chunk [2:4] share")));
}

TEST(ItemPlaces, WithoutBytesAreNowhere) {
  EXPECT_THAT(wrong({column("a", {rows(0, 0)}), column("b", {rows(0, 500, 0)})}), IsEmpty());
}

// The range of each begins where the safetensors file does and is as long as the payload.
TEST(ItemPlaces, OfASafetensorsFileAreTheFile) {
  EXPECT_THAT(wrong({column("a", {rows(0, 0, 8)}), column("b", {rows(0, 0, 8)})}), IsEmpty());
  EXPECT_THAT(wrong({column("a", {rows(0, 0, 8)}), column("b", {rows(0, 0)})}).size(), 1U);
}

}  // namespace
}  // namespace shardwright
