// SPDX-License-Identifier: Apache-2.0
#include "layout/unsaved_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kTower = "modality_submodules.images.encoders.clip_encoder.decoder.layers";
const std::string kEnd = ".self_attention.linear_proj.weight";

// In `pieces` along its columns.
StoredTensor unsaved_tensor(const std::string& name, const Dims& shape, std::int64_t pieces) {
  StoredTensor tensor{{name, DType::kF32, shape}, ChunkList(shape.size())};
  const int axis = shape.size() - 1;
  for (std::int64_t i = 0; i < pieces; ++i) {
    Chunk chunk{Box::whole(shape), 0, {}, {}};
    chunk.box.shape[axis] = shape[axis] / pieces;
    chunk.box.origin[axis] = i * chunk.box.shape[axis];
    tensor.chunks.push_back(chunk);
  }
  return tensor;
}

Catalog unsaved_catalog(const StoredTensor& tower, std::int64_t language_pieces) {
  Catalog catalog;
  catalog.tensors = {
      unsaved_tensor("language_model.decoder.layers" + kEnd, {4, 72, 120}, language_pieces), tower};
  return catalog;
}

TEST(UnsavedShards, AreOfTowersThatOneRankStored) {
  const StoredTensor half = unsaved_tensor(kTower + ".0" + kEnd, {36, 18}, 1);
  Catalog catalog = unsaved_catalog(half, 2);
  catalog.tensors.push_back(unsaved_tensor(kTower + ".1" + kEnd, {36, 18}, 1));
  const std::vector<LostPart> lost = unsaved_shards(catalog, 2);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front().name, kTower + ".0" + kEnd);
  EXPECT_THAT(lost.front().what, HasSubstr("found 18 columns, expected 36"));
  EXPECT_THAT(lost.front().what, HasSubstr("of " + kTower + " only the first rank's shards"));
  const StoredTensor stacked = unsaved_tensor(kTower + kEnd, {3, 36, 18}, 1);
  EXPECT_EQ(unsaved_shards(unsaved_catalog(stacked, 2), 2).size(), 1U);
}

TEST(UnsavedShards, AreNoneOfWhatIsWholeOrCut) {
  const std::string name = kTower + ".0" + kEnd;
  const auto of = [&](const Dims& shape, std::int64_t pieces, std::int64_t language,
                      std::int64_t tensor) {
    return unsaved_shards(unsaved_catalog(unsaved_tensor(name, shape, pieces), language), tensor);
  };
  EXPECT_THAT(of({36, 36}, 1, 2, 2), IsEmpty()) << "with a tensor size of 1 of its own";
  EXPECT_THAT(of({36, 18}, 2, 2, 2), IsEmpty()) << "narrow heads, of both ranks";
  EXPECT_THAT(of({36, 24}, 1, 2, 2), IsEmpty()) << "narrow heads";
  EXPECT_THAT(of({36, 18}, 1, 1, 2), IsEmpty()) << "the language model has one piece as well";
  EXPECT_THAT(of({36, 18}, 1, 2, 1), IsEmpty()) << "of one rank";
  EXPECT_THAT(of({0, 0}, 1, 2, 2), IsEmpty());
}

}  // namespace
}  // namespace shardwright
