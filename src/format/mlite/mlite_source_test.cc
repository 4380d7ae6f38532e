// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/mlite_source.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "layout/dtensor_placement.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// A tensor cut into even pieces along its rows; piece i was written by the i-th of `ranks`.
StoredTensor tensor_of(const std::string& name, const Dims& shape,
                       const std::vector<std::uint32_t>& ranks) {
  StoredTensor tensor{{name, DType::kBF16, shape}, ChunkList(shape.size()), Encoding::kRaw};
  const auto pieces = static_cast<std::int64_t>(ranks.size());
  for (std::int64_t i = 0; i < pieces; ++i) {
    Chunk chunk{Box::whole(shape), ranks[static_cast<std::size_t>(i)], {}, Dims()};
    const ShardRows rows = chunk_of({0, shape[0]}, pieces, i);
    chunk.box.origin[0] = rows.offset;
    chunk.box.shape[0] = rows.rows;
    const std::int64_t bytes = byte_count(chunk.box.shape, DType::kBF16).value_or(0);
    chunk.range = {0, static_cast<std::uint64_t>(bytes)};
    tensor.chunks.push_back(chunk);
  }
  return tensor;
}

Catalog catalog_of(std::vector<StoredTensor> tensors) {
  Catalog catalog;
  for (int rank = 0; rank < 8; ++rank) {
    catalog.files.push_back("__" + std::to_string(rank) + "_0.distcp");
  }
  catalog.tensors = std::move(tensors);
  return catalog;
}

// One layer of two experts: EP 2 x EDP 2, written by four ranks from `first` on, in this order.
void add_layer(std::vector<StoredTensor>& tensors, const std::string& prefix,
               const std::vector<std::uint32_t>& order, std::uint32_t first = 0) {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t rank : order) ranks.push_back(first + rank);
  tensors.push_back(tensor_of(prefix + "mlp.router.weight", {2, 4}, {first}));
  tensors.push_back(tensor_of(prefix + "mlp.experts.fc1.weight0", {24, 4}, ranks));
  tensors.push_back(tensor_of(prefix + "mlp.experts.fc2.weight0", {8, 6}, ranks));
}

Result<Catalog> global(const Catalog& catalog, std::vector<std::string>& notes) {
  return global_from_mlite(catalog, SourceOptions(), notes);
}

std::vector<std::string> names_in_run(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : catalog.tensors) names.push_back(tensor.desc.name);
  return names;
}

// Which rank wrote which rows: `0+6 by 2`.
std::vector<std::string> rows_of(const Catalog& catalog, std::string_view name) {
  std::vector<std::string> rows;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.name != name) continue;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Box box = tensor.chunks.box(i);
      rows.push_back(
          fmt::format("{}+{} by {}", box.origin[0], box.shape[0], tensor.chunks.file(i)));
    }
  }
  return rows;
}

std::string refusal(const Catalog& catalog) {
  std::vector<std::string> notes;
  const Result<Catalog> result = global(catalog, notes);
  return result ? "it was accepted" : result.error().message;
}

TEST(MliteSource, PutsRowsInOrderWhoeverWroteThem) {
  // Rank edp*2+ep. MLite counts EDP first, a merged placement EP.
  for (const std::vector<std::uint32_t>& order :
       {std::vector<std::uint32_t>{0, 1, 2, 3}, std::vector<std::uint32_t>{0, 2, 1, 3}}) {
    std::vector<StoredTensor> tensors;
    add_layer(tensors, "model.layers.0.", order);
    std::vector<std::string> notes;
    const auto result = global(catalog_of(std::move(tensors)), notes);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_THAT(rows_of(*result, "model.layers.0.mlp.experts.fc1.weight0"),
                UnorderedElementsAre("0+6 by 0", "6+6 by 2"));
    EXPECT_THAT(rows_of(*result, "model.layers.0.mlp.experts.fc2.weight1"),
                UnorderedElementsAre("0+2 by 1", "2+2 by 3"));
  }
}

// Nothing else on disk tells in which order the pieces of a merged axis lie.
TEST(MliteSource, SaysWhereNobodyTellsWhoWroteThePieces) {
  const auto told = [](const std::vector<std::uint32_t>& order, const std::string& file_prefix) {
    std::vector<StoredTensor> tensors;
    add_layer(tensors, "model.layers.0.", order);
    add_layer(tensors, "model.layers.1.", order);
    Catalog catalog = catalog_of(std::move(tensors));
    for (std::string& file : catalog.files) file = file_prefix + file;
    std::vector<std::string> notes;
    EXPECT_TRUE(global(catalog, notes));
    EXPECT_EQ(notes.size(), 1U + std::ranges::count_if(notes, [](const std::string& note) {
                              return note.find("who wrote") != std::string::npos;
                            }));
    return notes.back();
  };
  EXPECT_THAT(told({0, 2, 1, 3}, ""), testing::Not(HasSubstr("who wrote")));
  EXPECT_THAT(told({0, 1, 2, 3}, ""), testing::Not(HasSubstr("who wrote")));
  EXPECT_THAT(told({0, 3, 1, 2}, ""),
              testing::AllOf(HasSubstr("who wrote"), HasSubstr("4 tensors"),
                             HasSubstr("model.layers.0.mlp.experts.fc1.weight0")));
  EXPECT_THAT(told({0, 1, 2, 3}, "part"), HasSubstr("who wrote"));
  EXPECT_THAT(told({0, 1}, "part"), testing::Not(HasSubstr("who wrote"))) << "EP alone cuts";
}

TEST(MliteSource, HasRowsInOneOrderWhereOnlyDataRanksCut) {
  std::vector<StoredTensor> tensors;
  tensors.push_back(tensor_of("model.layers.0.mlp.router.weight", {2, 4}, {0}));
  for (const std::string expert : {"0", "1"}) {
    const std::string experts = "model.layers.0.mlp.experts.";
    tensors.push_back(tensor_of(experts + "fc1.weight" + expert, {12, 4}, {0, 1}));
    tensors.push_back(tensor_of(experts + "fc2.weight" + expert, {4, 6}, {0, 1}));
  }
  Catalog catalog = catalog_of(std::move(tensors));
  for (std::string& file : catalog.files) file = "part" + file;
  std::vector<std::string> notes;
  const auto result = global(catalog, notes);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("saved with EP 1, ETP 1, EDP 2")));
}

TEST(MliteSource, NumbersLayersThroughTheStages) {
  std::vector<StoredTensor> tensors;
  add_layer(tensors, "model_pp0.layers.0.", {0, 2, 1, 3});
  add_layer(tensors, "model_pp0.layers.1.", {0, 2, 1, 3});
  add_layer(tensors, "model_pp1.layers.0.", {0, 2, 1, 3}, 4);
  tensors.push_back(tensor_of("model_pp1.head.weight", {6, 4}, {4}));
  tensors.push_back(tensor_of("exp_avg_pp1.head.weight", {6, 4}, {4}));
  std::vector<std::string> notes;
  const auto result = global(catalog_of(std::move(tensors)), notes);
  ASSERT_TRUE(result) << result.error().text();
  std::vector<std::string> expected;
  for (const char* layer : {"0", "1", "2"}) {
    const std::string prefix = std::string("model.layers.") + layer + ".mlp.";
    expected.push_back(prefix + "router.weight");
    for (const char* linear : {"fc1", "fc2"}) {
      for (const char* expert : {"0", "1"}) {
        expected.push_back(prefix + "experts." + linear + ".weight" + expert);
      }
    }
  }
  expected.insert(expected.end(), {"model.head.weight", "exp_avg_pp1.head.weight"});
  EXPECT_THAT(names_in_run(*result), testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(rows_of(*result, "model.layers.2.mlp.experts.fc1.weight1"),
              UnorderedElementsAre("0+6 by 5", "6+6 by 7"));
  EXPECT_THAT(notes.back(), HasSubstr("exp_avg_pp1.head.weight: no parameters of the model"));
}

TEST(MliteSource, KeepsNumbersThatAreTheModels) {
  std::vector<StoredTensor> tensors;
  add_layer(tensors, "model_pp0.layers.0.", {0, 1, 2, 3});
  add_layer(tensors, "model_pp1.layers.1.", {0, 1, 2, 3}, 4);
  std::vector<std::string> notes;
  const auto result = global(catalog_of(tensors), notes);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_THAT(names_in_run(*result), testing::Contains("model.layers.1.mlp.experts.fc2.weight1"));
  EXPECT_EQ(notes.size(), 1U);
  // Layer 1 in both stages, and 0 only in the first: neither numbering.
  add_layer(tensors, "model_pp0.layers.1.", {0, 1, 2, 3});
  EXPECT_THAT(refusal(catalog_of(tensors)), HasSubstr("do not begin at 0 in each"));
}

TEST(MliteSource, RefusesExpertsThatAreNotLikeTheOthers) {
  const auto with = [](const StoredTensor& tensor) {
    std::vector<StoredTensor> tensors;
    add_layer(tensors, "model.layers.0.", {0, 1, 2, 3});
    tensors.push_back(tensor);
    return refusal(catalog_of(std::move(tensors)));
  };
  const std::string prefix = "model.layers.0.mlp.experts.";
  EXPECT_THAT(with(tensor_of(prefix + "fc1.weight9223372036854775807", {4}, {0, 1, 2, 3})),
              HasSubstr("weight9223372036854775807: found expert 9223372036854775807 of a rank"));
  EXPECT_THAT(with(tensor_of("model.layers.0.mlp.experts.fc2.weight0", {8}, {0, 1})),
              HasSubstr("fc2.weight0: found expert 0 of a rank in 2 pieces"));
}

TEST(MliteSource, RefusesSizesThatCannotBe) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<StoredTensor> tensors;
  add_layer(tensors, "model.layers.0.", {0, 1, 2, 3});
  tensors[0] = tensor_of("model.layers.0.mlp.router.weight", {kMost, 1}, {0});
  EXPECT_THAT(refusal(catalog_of(tensors)), HasSubstr("give --source-ep and --source-etp"));
  tensors[0] = tensor_of("model.layers.0.mlp.router.weight", {2, kMost / 2}, {0});
  EXPECT_THAT(refusal(catalog_of(tensors)), HasSubstr("found the"));
  std::vector<std::string> notes;
  SourceOptions request;
  request.source_expert = kMost;
  const auto result = global_from_mlite(catalog_of(tensors), request, notes);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("--source-ep"));
}

}  // namespace
}  // namespace shardwright
