// SPDX-License-Identifier: Apache-2.0
#include "exec/finish_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/torch_layout.h"
#include "exec/guarded_object.h"
#include "io/memory_directory.h"
#include "io/watched_directory.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

TEST(FinishReading, ReadsTheRestOfEveryBegunRecord) {
  constexpr std::size_t kSize = std::size_t{3} << 20;
  std::string bytes(kSize, 'x');
  const std::uint32_t crc = crc32(as_bytes(bytes));
  bytes[kSize - 1] = 'y';
  MemoryDirectory folder;
  folder.put("f", bytes);
  SourceFiles files(folder, {"f"}, 1);
  files.expect({0, {0, kSize}, crc, "a/data/0", "tensor w"});
  EXPECT_TRUE(finish_reading(files, 3)) << "nothing was read";
  std::byte first{};
  ASSERT_TRUE(files.read_at(0, 0, std::span(&first, 1)));
  const Status status = finish_reading(files, 3);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kPayloadDamaged);
  EXPECT_THAT(status.error().message, HasSubstr("record 'a/data/0' of tensor w"));
}

TEST(FinishReading, FindsAFileThatWasChangedMeanwhile) {
  auto memory = std::make_unique<MemoryDirectory>();
  MemoryDirectory& folder = *memory;
  folder.put("f", "contents");
  const WatchedDirectory watched(std::move(memory));
  SourceFiles files(watched, {"f"}, 1);
  std::byte first{};
  ASSERT_TRUE(files.read_at(0, 0, std::span(&first, 1)));
  EXPECT_TRUE(finish_reading(files, 1));
  folder.touch("f", 3, '!');
  EXPECT_EQ(finish_reading(files, 1).error().code, Code::kSourceChanged);
}

// An entry that is copied as it is: the archive of some small object.
TEST(GuardedObject, IsComparedWhileItIsCopied) {
  const TorchLayout layout = TorchLayout::make("pickle bytes", {}, {}).value();
  const std::string whole = layout.head() + layout.tail({});
  const auto copy = [&](const std::string& path, const std::string& bytes) -> Status {
    MemoryDirectory folder;
    folder.put(path, bytes);
    SourceFiles files(folder, {path}, 1);
    SW_TRY(expect_object(files, {"entry", 0, {0, bytes.size()}}));
    std::string read(bytes.size(), '\0');
    return files.read_at(0, 0, std::as_writable_bytes(std::span(read)));
  };
  EXPECT_TRUE(copy("x.distcp", whole));
  EXPECT_TRUE(copy("x.distcp", "no archive"));
  EXPECT_TRUE(copy("x.distcp", ""));
  std::string altered = whole;
  altered[whole.find("pickle bytes")] ^= 1;
  const Status status = copy("x.distcp", altered);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kPayloadDamaged);
  EXPECT_THAT(status.error().message, HasSubstr("data.pkl' of entry"));
  EXPECT_TRUE(copy("x.json", altered)) << "nobody said that this one is torch's";
  EXPECT_EQ(copy("x.distcp", whole.substr(0, whole.size() - 1)).error().code, Code::kZipCorrupt);
}

}  // namespace
}  // namespace shardwright
