// SPDX-License-Identifier: Apache-2.0
#include "dcp/rank_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "dcp/dcp_metadata.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RankMetadata, IsToldByItsName) {
  EXPECT_EQ(metadata_rank("__0.metadata"), 0);
  EXPECT_EQ(metadata_rank("__12.metadata"), 12);
  for (const char* name :
       {".metadata", "__.metadata", "__-1.metadata", "__1x.metadata", "__1.metadata.tmp",
        "_1.metadata", "__99999999999999999999.metadata", "__0_0.distcp"}) {
    EXPECT_EQ(metadata_rank(name), std::nullopt) << name;
  }
}

// Rows `begin` to `end` of a tensor of four.
StoredTensor rows_of(std::string name, std::int64_t begin, std::int64_t end,
                     DType dtype = DType::kF32, std::int64_t all = 4) {
  StoredTensor tensor{{std::move(name), dtype, {all}}, ChunkList(1), Encoding::kTorchItem};
  tensor.chunks.push_back({Box{{begin}, {end - begin}}, 0, {100, 50}, {}});
  return tensor;
}

std::string encoded(std::vector<StoredTensor> tensors, std::vector<StoredObject> objects = {},
                    const std::string& file = "__0_0.distcp") {
  Catalog catalog;
  catalog.files = {file};
  catalog.tensors = std::move(tensors);
  catalog.objects = std::move(objects);
  return encode_dcp_metadata(catalog).value();
}

TEST(RankMetadata, OfAllRanksIsOneCatalog) {
  MemoryDirectory directory;
  directory.put("__0.metadata", encoded({rows_of("w", 0, 2), rows_of("own", 0, 4)},
                                        {{"step", 0, {7, 3}}}, "__0_0.distcp"));
  directory.put("__1.metadata",
                encoded({rows_of("w", 2, 4)}, {{"step", 0, {9, 3}}}, "__1_0.distcp"));
  directory.put("__2_0.distcp", "no metadata");
  const Catalog catalog = read_any_metadata(directory).value().catalog;
  ASSERT_THAT(catalog.files, ElementsAre("__0_0.distcp", "__1_0.distcp"));
  ASSERT_EQ(catalog.tensors.size(), 2U);
  const auto w = std::ranges::find_if(catalog.tensors,
                                      [](const auto& tensor) { return tensor.desc.name == "w"; });
  ASSERT_EQ(w->chunks.size(), 2U);
  EXPECT_EQ(w->chunks.file(0), 0U);
  EXPECT_EQ(w->chunks.file(1), 1U);
  EXPECT_EQ(w->chunks.box(1).origin, (Dims{2}));
  ASSERT_EQ(catalog.objects.size(), 2U);
  EXPECT_EQ(catalog.objects[1].file, 1U);
}

TEST(RankMetadata, ThatSayOtherwiseThanTheWholeAreTold) {
  const auto told = [](const std::string& whole, const std::string& rank) {
    MemoryDirectory directory;
    directory.put(".metadata", whole);
    if (!rank.empty()) directory.put("__0.metadata", rank);
    const Catalog catalog = read_any_metadata(directory).value().catalog;
    return contradicting_ranks(directory, catalog);
  };
  const std::string whole = encoded({rows_of("w", 0, 4), rows_of("v", 0, 4)}, {{"o", 0, {0, 9}}});
  EXPECT_EQ(told(whole, ""), "");
  EXPECT_EQ(told(whole, encoded({rows_of("v", 0, 4), rows_of("w", 0, 4)}, {{"o", 0, {3, 9}}})), "");
  EXPECT_THAT(told(whole, "rubbish"), HasSubstr("are not read: "));
  for (const std::string& rank :
       {encoded({rows_of("w", 0, 4)}, {{"o", 0, {0, 9}}}),
        encoded({rows_of("w", 0, 4), rows_of("v", 0, 4, DType::kBF16)}, {{"o", 0, {0, 9}}}),
        encoded({rows_of("w", 0, 4), rows_of("v", 0, 5, DType::kF32, 5)}, {{"o", 0, {0, 9}}})}) {
    EXPECT_THAT(told(whole, rank), HasSubstr("say otherwise of v"));
  }
  EXPECT_THAT(told(whole, encoded({rows_of("w", 0, 4), rows_of("v", 0, 4), rows_of("u", 0, 4)},
                                  {{"o", 0, {0, 9}}})),
              HasSubstr("say otherwise of u"));
  EXPECT_THAT(told(whole, encoded({rows_of("w", 0, 4), rows_of("v", 0, 4)}, {})),
              HasSubstr("say otherwise of o"));
  EXPECT_THAT(told(whole, encoded({rows_of("w", 0, 4), rows_of("v", 0, 4)}, {{"o", 0, {0, 9}}},
                                  "__1_0.distcp")),
              HasSubstr("say otherwise of"));
}

TEST(RankMetadata, TheWholesComesBeforeThoseOfRanks) {
  MemoryDirectory directory;
  directory.put("__0.metadata", "rubbish");
  directory.put(".metadata", encoded({rows_of("whole", 0, 4)}));
  EXPECT_EQ(read_any_metadata(directory).value().catalog.tensors[0].desc.name, "whole");
}

Error refused_ranks(const MemoryDirectory& directory) {
  const auto read = read_any_metadata(directory);
  EXPECT_FALSE(read.has_value());
  return read ? Error{} : read.error();
}

TEST(RankMetadata, OfAMissingRankIsNamed) {
  MemoryDirectory directory;
  directory.put("__0.metadata", encoded({rows_of("w", 0, 2)}));
  directory.put("__2.metadata", encoded({rows_of("w", 2, 4)}));
  const Error error = refused_ranks(directory);
  EXPECT_EQ(error.code, Code::kMetadataCorrupt);
  EXPECT_THAT(error.message, HasSubstr("__1.metadata: not found, expected one file for each rank"));
}

TEST(RankMetadata, OfNoRankIsNotFound) {
  EXPECT_EQ(refused_ranks(MemoryDirectory()).code, Code::kNotFound);
}

TEST(RankMetadata, OfRanksThatDisagreeIsRefused) {
  for (const StoredTensor& other :
       {rows_of("w", 2, 4, DType::kBF16), rows_of("w", 2, 4, DType::kF32, 5)}) {
    MemoryDirectory directory;
    directory.put("__0.metadata", encoded({rows_of("w", 0, 2)}));
    directory.put("__1.metadata", encoded({other}));
    const Error error = refused_ranks(directory);
    EXPECT_EQ(error.code, Code::kMetadataCorrupt);
    EXPECT_THAT(error.message, HasSubstr("__1.metadata: tensor w: found"));
  }
  MemoryDirectory directory;
  directory.put("__0.metadata", encoded({rows_of("w", 0, 4)}));
  directory.put("__1.metadata", encoded({}, {{"w", 0, {0, 1}}}));
  EXPECT_THAT(refused_ranks(directory).message,
              HasSubstr("entry w: found a tensor on one rank and an object on another"));
}

class RankObjects : public ::testing::Test {
 protected:
  // The notes, with what is kept in `catalog_`.
  Result<std::vector<std::string>> settle(std::vector<StoredObject> objects) {
    catalog_.objects = std::move(objects);
    SourceFiles files(directory_, {"a", "b"}, 8);
    return settle_rank_objects(catalog_, files);
  }

  MemoryDirectory directory_;
  Catalog catalog_;
};

TEST_F(RankObjects, ThatAreEqualAreOne) {
  const std::string large(100'000, 'x');
  directory_.put("a", "1234" + large);
  directory_.put("b", "xx34" + large);
  EXPECT_THAT(settle({{"step", 0, {2, 2}},
                      {"step", 1, {2, 2}},
                      {"alone", 0, {0, 1}},
                      {"large", 0, {4, 100'000}},
                      {"large", 1, {4, 100'000}}})
                  .value(),
              IsEmpty());
  EXPECT_EQ(catalog_.objects.size(), 3U);
}

TEST_F(RankObjects, ThatDifferAreLeftOutWithANote) {
  directory_.put("a", "1234" + std::string(100'000, 'x'));
  directory_.put("b", "x234" + std::string(99'999, 'x') + "y");
  const auto notes = settle({{"first", 0, {0, 2}},
                             {"first", 1, {0, 2}},
                             {"longer", 0, {1, 2}},
                             {"longer", 1, {1, 3}},
                             {"last", 0, {4, 100'000}},
                             {"last", 1, {4, 100'000}},
                             {"same", 0, {1, 3}},
                             {"same", 1, {1, 3}}})
                         .value();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("entry first is left out"), HasSubstr("entry last"),
                                 HasSubstr("entry longer")));
  ASSERT_EQ(catalog_.objects.size(), 1U);
  EXPECT_EQ(catalog_.objects[0].name, "same");
}

// A few bytes of metadata may claim any size.
TEST_F(RankObjects, ThatEndBehindTheirFileTakeNoMemory) {
  directory_.put("a", "1234");
  directory_.put("b", "1234");
  const std::uint64_t huge = std::uint64_t{1} << 60;
  const auto notes = settle({{"step", 0, {0, huge}}, {"step", 1, {0, huge}}});
  ASSERT_FALSE(notes.has_value());
  EXPECT_EQ(notes.error().code, Code::kShortRead);
}

}  // namespace
}  // namespace shardwright
