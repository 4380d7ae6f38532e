// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "base/fail.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr std::uint64_t kBlock = BlockCache::kBlockBytes;
constexpr std::uint64_t kBlocks = 192;  // of the file, and ten bytes
constexpr std::uint64_t kSize = kBlocks * kBlock + 10;

struct Asked {
  std::string path;
  std::uint64_t offset = 0;
  std::size_t count = 0;
  friend bool operator==(const Asked&, const Asked&) = default;
};

/// Files in memory that remember what was asked for.
class FakeStore final : public RemoteStore {
 public:
  struct Log {
    std::mutex mutex;
    std::vector<Asked> reads;
    std::chrono::milliseconds delay{0};
    std::atomic<int> failures = 0;
    int listings = 0;
    int looks = 0;
  };

  explicit FakeStore(Log& log) : log_(log) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<DirectoryEntry>> list(std::string_view folder) const override {
    ++log_.listings;
    if (folder == "gone") return fail(Code::kNotFound, "gone");
    if (folder == "ill") return fail(Code::kRemote, "ill");
    if (!folder.empty()) return std::vector<DirectoryEntry>{};
    std::vector<DirectoryEntry> entries = {{"z", false, 3}, {"both", false, 1}, {"both", true}};
    for (const char* hostile : {"..", "a/b", "", "."}) entries.push_back({hostile, false, 1});
    return entries;
  }
  Result<RemoteObject> look(std::string_view path) const override {
    ++log_.looks;
    if (path == "secret" || path == "hidden/secret") return fail(Code::kPermission, "secret");
    if (path != "big" && path != "z" && path != "hidden/x") return fail(Code::kNotFound, "none");
    return RemoteObject{contents_.size(), tag};
  }
  Status read(std::string_view path, const RemoteObject& object, std::uint64_t offset,
              std::span<std::byte> buffer) const override {
    {
      const std::scoped_lock lock(log_.mutex);
      log_.reads.push_back({std::string(path), offset, buffer.size()});
    }
    std::this_thread::sleep_for(log_.delay);
    if (log_.failures > 0 && log_.failures-- > 0) return fail(Code::kRemote, "failed");
    if (object.tag != tag) return fail(Code::kSourceChanged, "changed");
    std::memcpy(buffer.data(), contents_.data() + offset, buffer.size());
    return {};
  }
  bool tells_all(std::string_view folder) const override { return folder != "hidden"; }

  static std::string byte_at(std::uint64_t at) {
    return std::string(1, static_cast<char>(at * 31 + at / 251));
  }
  std::string tag = "\"1\"";

 private:
  static std::string make() {
    std::string bytes;
    for (std::uint64_t i = 0; i < kSize; ++i) bytes += byte_at(i);
    return bytes;
  }

  Log& log_;
  std::string name_ = "s3://bucket/run";
  std::string contents_ = make();
};

class RemoteDirectoryTest : public testing::Test {
 protected:
  RemoteDirectoryTest() : store_(new FakeStore(log_)), directory_(owned()) {}

  static std::string read(const ReadableFile& file, std::uint64_t offset, std::size_t count) {
    std::string bytes(count, '\0');
    EXPECT_TRUE(file.read_at(offset, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }
  static std::string expected(std::uint64_t offset, std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += FakeStore::byte_at(offset + i);
    return bytes;
  }

  FakeStore::Log log_;
  FakeStore* store_;
  RemoteDirectory directory_;

 private:
  std::unique_ptr<RemoteStore> owned() { return std::unique_ptr<RemoteStore>(store_); }
};

TEST_F(RemoteDirectoryTest, SmallReadsAreOfBlocksThatAreAskedForOnce) {
  const auto file = directory_.open("big").value();
  EXPECT_EQ(file->size(), kSize);
  EXPECT_EQ(file->name(), "s3://bucket/run/big");
  EXPECT_TRUE(file->is_remote());
  EXPECT_EQ(read(*file, kBlock - 5, 10), expected(kBlock - 5, 10));
  EXPECT_EQ(read(*file, 100, 3 * kBlock), expected(100, 3 * kBlock));
  EXPECT_EQ(read(*file, kSize - 9, 9), expected(kSize - 9, 9));
  EXPECT_THAT(log_.reads,
              ElementsAre(Asked{"big", 0, 4 * kBlock}, Asked{"big", kBlocks * kBlock, 10}));
}

TEST_F(RemoteDirectoryTest, OfWhatLiesAloneLittleIsFetched) {
  const auto file = directory_.open("big").value();
  for (const std::uint64_t block : {0U, 21U, 42U, 100U}) {
    EXPECT_EQ(read(*file, block * kBlock, 1), expected(block * kBlock, 1));
  }
  EXPECT_EQ(read(*file, 130 * kBlock, 6 * kBlock), expected(130 * kBlock, 6 * kBlock));
  EXPECT_THAT(
      log_.reads,
      ElementsAre(Asked{"big", 0, 4 * kBlock}, Asked{"big", 21 * kBlock, 4 * kBlock},
                  Asked{"big", 42 * kBlock, 4 * kBlock}, Asked{"big", 100 * kBlock, 4 * kBlock},
                  Asked{"big", 130 * kBlock, 6 * kBlock}));
}

TEST_F(RemoteDirectoryTest, WhoeverReadsOnGetsMoreEachTime) {
  const auto file = directory_.open("big").value();
  for (std::uint64_t at = 0; at < kSize; at += 1000) {
    const std::size_t count = std::min<std::uint64_t>(1000, kSize - at);
    ASSERT_EQ(read(*file, at, count), expected(at, count));
  }
  EXPECT_THAT(
      log_.reads,
      ElementsAre(Asked{"big", 0, 4 * kBlock}, Asked{"big", 4 * kBlock, 8 * kBlock},
                  Asked{"big", 12 * kBlock, 16 * kBlock}, Asked{"big", 28 * kBlock, 32 * kBlock},
                  Asked{"big", 60 * kBlock, 64 * kBlock}, Asked{"big", 124 * kBlock, 64 * kBlock},
                  Asked{"big", 188 * kBlock, 4 * kBlock + 10}));
}

TEST_F(RemoteDirectoryTest, ReadsOnThroughShortGapsAndUpToWhatIsHeld) {
  const auto file = directory_.open("big").value();
  EXPECT_EQ(read(*file, 40 * kBlock, 1), expected(40 * kBlock, 1));
  EXPECT_EQ(read(*file, 0, 1), expected(0, 1));
  EXPECT_EQ(read(*file, 20 * kBlock, 1), expected(20 * kBlock, 1));
  EXPECT_EQ(read(*file, 39 * kBlock, 1), expected(39 * kBlock, 1));
  EXPECT_EQ(read(*file, 39 * kBlock, 5 * kBlock), expected(39 * kBlock, 5 * kBlock));
  EXPECT_THAT(
      log_.reads,
      ElementsAre(Asked{"big", 40 * kBlock, 4 * kBlock}, Asked{"big", 0, 4 * kBlock},
                  Asked{"big", 20 * kBlock, 8 * kBlock}, Asked{"big", 39 * kBlock, kBlock}));
}

TEST_F(RemoteDirectoryTest, ThreadsDoNotAskForTheSameAtOnce) {
  log_.delay = std::chrono::milliseconds(20);
  const auto file = directory_.open("big").value();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { EXPECT_EQ(read(*file, i * 1000, 10), expected(i * 1000, 10)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(log_.reads, testing::SizeIs(testing::Le(2U))) << "four blocks, or one alone and then";
  std::uint64_t bytes = 0;
  for (const Asked& asked : log_.reads) bytes += asked.count;
  EXPECT_LE(bytes, 5 * kBlock);
}

TEST_F(RemoteDirectoryTest, WhatCouldNotBeFetchedIsAskedForAgain) {
  log_.delay = std::chrono::milliseconds(20);
  log_.failures = 1;
  const auto file = directory_.open("big").value();
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::byte byte{};
      if (!file->read_at(5, std::span(&byte, 1))) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(log_.reads.size(), 2U);
}

TEST_F(RemoteDirectoryTest, LongReadsAreRequestsOfTheirOwn) {
  const auto file = directory_.open("big").value();
  const std::size_t count = (std::size_t{128} << 10) + 1;
  EXPECT_EQ(read(*file, 7, count), expected(7, count));
  EXPECT_EQ(read(*file, 7, count), expected(7, count));
  EXPECT_THAT(log_.reads, ElementsAre(Asked{"big", 7, count}, Asked{"big", 7, count}));
}

TEST_F(RemoteDirectoryTest, WhatWasReadAsAWholeIsKept) {
  EXPECT_EQ(read(*directory_.open("big").value(), 0, kSize), expected(0, kSize));
  const auto file = directory_.open("big").value();
  EXPECT_EQ(read(*file, 0, kSize), expected(0, kSize));
  EXPECT_EQ(read(*file, kSize - 20, 20), expected(kSize - 20, 20));
  EXPECT_THAT(log_.reads, ElementsAre(Asked{"big", 0, kSize}));
}

TEST_F(RemoteDirectoryTest, ReadsEndWhereTheFileDoes) {
  const auto file = directory_.open("big").value();
  std::byte two[2];
  for (const std::uint64_t offset : {kSize - 1, kSize + 1, ~std::uint64_t{0}}) {
    const Status status = file->read_at(offset, two);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kShortRead);
  }
  EXPECT_TRUE(log_.reads.empty());
  EXPECT_TRUE(file->read_at(kSize, {}));
}

// Blocks of the file that was there before are no part of the one that is there now.
TEST_F(RemoteDirectoryTest, BlocksBelongToTheFileAsItWasOpened) {
  const auto before = directory_.open("big").value();
  EXPECT_EQ(read(*before, 0, 4), expected(0, 4));
  store_->tag = "\"2\"";
  const auto after = directory_.open("big").value();
  EXPECT_NE(before->version(), after->version());
  EXPECT_EQ(read(*after, 0, 4), expected(0, 4));
  EXPECT_EQ(log_.reads.size(), 2U);
  std::byte byte{};
  const Status status = before->read_at(100 * kBlock, std::span(&byte, 1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kSourceChanged);
  EXPECT_EQ(directory_.version("big").value(), after->version());
}

TEST_F(RemoteDirectoryTest, FilesOutliveIt) {
  std::unique_ptr<ReadableFile> file;
  {
    const RemoteDirectory directory(std::make_unique<FakeStore>(log_));
    file = directory.open("big").value();
  }
  EXPECT_EQ(read(*file, 1, 3), expected(1, 3));
}

TEST_F(RemoteDirectoryTest, ListsOnceSortedAndWithoutWhatIsNoName) {
  for (int i = 0; i < 2; ++i) {
    const auto entries = directory_.list("").value();
    EXPECT_THAT(entries, ElementsAre(Field(&DirectoryEntry::name, "both"),
                                     Field(&DirectoryEntry::name, "z")));
    EXPECT_TRUE(entries[0].is_directory);
  }
  EXPECT_EQ(log_.listings, 1);
  const auto gone = directory_.list("gone");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST_F(RemoteDirectoryTest, NothingLeadsOutOfIt) {
  for (const char* path : {"..", "a/../..", "/etc", "a//b", "./a"}) {
    for (const Code code : {directory_.open(path).error().code, directory_.list(path).error().code,
                            directory_.version(path).error().code}) {
      EXPECT_EQ(code, Code::kPathEscapes) << path;
    }
    EXPECT_FALSE(directory_.exists(path));
  }
  EXPECT_EQ(log_.looks + log_.listings, 0);
}

TEST_F(RemoteDirectoryTest, ExistsWhatIsListedOrFoundOrCannotBeTold) {
  EXPECT_TRUE(directory_.exists(""));
  EXPECT_TRUE(directory_.exists("both"));
  EXPECT_FALSE(directory_.exists("big"));  // the listing tells all
  EXPECT_EQ(log_.looks, 0);
  EXPECT_TRUE(directory_.exists("hidden/x"));
  EXPECT_FALSE(directory_.exists("hidden/y"));
  EXPECT_FALSE(directory_.exists("gone/x"));
  EXPECT_FALSE(directory_.exists("ill/x")) << "the list above tells";
  EXPECT_TRUE(RemoteDirectory(std::make_unique<FakeStore>(log_)).exists("ill/x"));
  EXPECT_FALSE(directory_.exists("hidden/secret")) << "some servers refuse what is not there";
}

TEST_F(RemoteDirectoryTest, IsOnlyRead) {
  const auto refused = directory_.create("x", 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPermission);
  EXPECT_THAT(refused.error().message, HasSubstr("only read"));
}

TEST(RemoteObject, VersionsDifferWithTheTagAndTheSize) {
  const RemoteObject one{5, "\"a\""};
  EXPECT_EQ(one.version(), (RemoteObject{5, "\"a\""}).version());
  EXPECT_NE(one.version(), (RemoteObject{5, "\"b\""}).version());
  EXPECT_NE(one.version(), (RemoteObject{6, "\"a\""}).version());
  EXPECT_EQ((RemoteObject{5, ""}).version().modified_ns, 0);
  // Nothing but its size is known of it: it may be another of the same size tomorrow.
  EXPECT_FALSE((RemoteObject{5, ""}).version().tells_contents);
  EXPECT_TRUE(one.version().tells_contents);
  EXPECT_TRUE((RemoteObject{0, ""}).version().tells_contents);
  // What a journal and other ranks go by.
  EXPECT_NE(one.version().modified_ns, (RemoteObject{5, "\"b\""}).version().modified_ns);
}

TEST(BlockCache, ForgetsWhatWasUnusedForLongest) {
  BlockCache cache(4 * kBlock);
  const std::vector<std::byte> block(kBlock);
  const auto is_held = [&](const char* file) {
    const BlockCache::Found found = cache.find(file, 0, 1, 1);
    cache.drop(file, 0, found.claimed);
    return found.block != nullptr;
  };
  for (const char* file : {"a", "b", "c", "d"}) cache.put(file, 0, block);
  EXPECT_TRUE(is_held("a"));  // used now
  cache.put("e", 0, block);
  EXPECT_FALSE(is_held("b"));
  EXPECT_TRUE(is_held("a"));
  EXPECT_TRUE(is_held("e"));
  cache.put("c", 0, std::span(block).first(5));
  cache.put("f", 0, std::span(block).first(kBlock - 5));
  for (const char* file : {"a", "c", "d", "e", "f"}) EXPECT_TRUE(is_held(file)) << file;
  EXPECT_EQ(cache.find("c", 0, 1, 1).block->size(), 5U);
}

TEST(RemoteDirectory, AsksForNoFolderThatTheOneAboveDoesNotList) {
  FakeStore::Log log;
  const RemoteDirectory directory(std::make_unique<FakeStore>(log));
  ASSERT_TRUE(directory.list("both"));
  ASSERT_TRUE(directory.list("other")) << "nobody has listed what is above it yet";
  ASSERT_TRUE(directory.list(""));
  EXPECT_EQ(log.listings, 3);
  const auto absent = directory.list("absent");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kNotFound);
  EXPECT_FALSE(directory.list("z")) << "a file";
  EXPECT_EQ(log.listings, 3);
  // Servers leave these out of their lists.
  EXPECT_TRUE(directory.list(".cache"));
  EXPECT_EQ(log.listings, 4);
}

}  // namespace
}  // namespace shardwright
