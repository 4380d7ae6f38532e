// SPDX-License-Identifier: Apache-2.0
#include "dcp/decoded_items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "io/memory_directory.h"
#include "io/spool_file.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::string packed(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

// One file with one item, of a tensor of so many bytes.
struct Fixture {
  Fixture(const std::string& item, std::int64_t declared) {
    folder.put("__0_0.distcp", item);
    catalog.files = {"__0_0.distcp"};
    StoredTensor tensor{{"w", DType::kU8, {declared}}, ChunkList(1), Encoding::kZstdItem};
    tensor.chunks.push_back({Box::whole({declared}), 0, {0, item.size()}, {}});
    catalog.tensors.push_back(std::move(tensor));
    catalog.objects.push_back({"object", 0, {0, item.size()}});
  }

  MemoryDirectory folder;
  Catalog catalog;
  SourceFiles files{folder, {"__0_0.distcp"}, 10};
};

TEST(DecodedItems, AnItemHoldsNoMoreThanItsTensor) {
  const std::string item = packed(std::string(3 << 20, '\0'));
  ASSERT_LT(item.size(), 1000u);
  Fixture lying(item, 1 << 20);
  const Status status = decode_items(lying.catalog, lying.files);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kLimit);
  EXPECT_THAT(status.error().message, HasSubstr("__0_0.distcp@0: found 3145728 bytes"));
  Fixture sound(item, 3 << 20);
  const Status decoded = decode_items(sound.catalog, sound.files);
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(sound.catalog.tensors[0].chunks.range(0).length, std::uint64_t{3} << 20);
}

TEST(DecodedItems, AFileExpandsNoFurtherThanItsAllowance) {
  Fixture bomb(packed(std::string(80 << 20, '\0')), 80 << 20);
  const Status status = decode_items(bomb.catalog, bomb.files);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kLimit);
  EXPECT_THAT(status.error().message, HasSubstr("__0_0.distcp: its zstd items expand to more"));
}

TEST(DecodedItems, ObjectsTooAreCounted) {
  Fixture bomb(packed(std::string(80 << 20, '\0')), 1);
  const std::vector<TransformedItem> items = {{0, "object", {std::string(kZstdDescriptor)}}};
  const Status status = decode_objects(items, bomb.catalog, bomb.files);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kLimit);
}

TEST(DecodedItems, AreRefusedBeforeTheyAreDecodedWhereTheDiskIsTooSmall) {
  const std::int64_t huge = std::int64_t{1} << 48;
  Fixture bomb(packed("PK"), huge);
  const Status status = decode_items(bomb.catalog, bomb.files);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kDiskSpace);
  EXPECT_THAT(status.error().message, HasSubstr("set TMPDIR"));
  EXPECT_TRUE(SpoolFile::check_room(1));
}

}  // namespace
}  // namespace shardwright
