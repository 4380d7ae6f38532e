// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "base/fail.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr std::uint64_t kBlock = BlockCache::kBlockBytes;

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
    std::vector<Asked> reads;
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
    log_.reads.push_back({std::string(path), offset, buffer.size()});
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
    for (std::uint64_t i = 0; i < 3 * kBlock + 10; ++i) bytes += byte_at(i);
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
  EXPECT_EQ(file->size(), 3 * kBlock + 10);
  EXPECT_EQ(file->name(), "s3://bucket/run/big");
  EXPECT_EQ(read(*file, kBlock - 5, 10), expected(kBlock - 5, 10));
  EXPECT_EQ(read(*file, 100, kBlock / 2), expected(100, kBlock / 2));
  EXPECT_EQ(read(*file, 3 * kBlock + 1, 9), expected(3 * kBlock + 1, 9));
  EXPECT_THAT(log_.reads, ElementsAre(Asked{"big", 0, kBlock}, Asked{"big", kBlock, kBlock},
                                      Asked{"big", 3 * kBlock, 10}));
}

TEST_F(RemoteDirectoryTest, LongReadsAreRequestsOfTheirOwn) {
  const auto file = directory_.open("big").value();
  const std::size_t count = kBlock / 2 + 1;
  EXPECT_EQ(read(*file, 7, count), expected(7, count));
  EXPECT_THAT(log_.reads, ElementsAre(Asked{"big", 7, count}));
}

TEST_F(RemoteDirectoryTest, ReadsEndWhereTheFileDoes) {
  const auto file = directory_.open("big").value();
  std::byte two[2];
  for (const std::uint64_t offset : {3 * kBlock + 9, 3 * kBlock + 11, ~std::uint64_t{0}}) {
    const Status status = file->read_at(offset, two);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kShortRead);
  }
  EXPECT_TRUE(log_.reads.empty());
  EXPECT_TRUE(file->read_at(3 * kBlock + 10, {}));
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
  const Status status = before->read_at(kBlock, std::span(&byte, 1));
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
  EXPECT_TRUE(directory_.exists("ill/x"));
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
  BlockCache cache;
  const auto block = std::make_shared<const std::vector<std::byte>>(1);
  for (std::uint64_t i = 0; i < BlockCache::kMostBlocks; ++i) cache.put({"f", i}, block);
  EXPECT_NE(cache.find({"f", 0}), nullptr);  // used now
  cache.put({"g", 0}, block);
  EXPECT_EQ(cache.find({"f", 1}), nullptr);
  EXPECT_NE(cache.find({"f", 0}), nullptr);
  EXPECT_NE(cache.find({"g", 0}), nullptr);
  const auto other = std::make_shared<const std::vector<std::byte>>(2);
  cache.put({"f", 2}, other);
  EXPECT_EQ(cache.find({"f", 2}), other);
  cache.put({"h", 0}, block);
  EXPECT_EQ(cache.find({"f", 3}), nullptr);
  EXPECT_NE(cache.find({"f", 2}), nullptr);
}

}  // namespace
}  // namespace shardwright
