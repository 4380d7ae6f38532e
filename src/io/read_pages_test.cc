// SPDX-License-Identifier: Apache-2.0
#include "io/read_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "io/source_files.h"
#include "shardwright/storage.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBlock = 4 * kMiB;

bool is_short_now() { return true; }
bool is_not_short() { return false; }

// 18 MiB that are read by nobody really: which of its blocks others had read, and what is given
// back, in MiB.
class CachedFile final : public ReadableFile {
 public:
  explicit CachedFile(std::set<std::uint64_t> cached) : cached_(std::move(cached)) {}
  std::uint64_t size() const override { return 18 * kMiB; }
  const std::string& name() const override { return name_; }
  Status read_at(std::uint64_t /*offset*/, std::span<std::byte> /*buffer*/) const override {
    return {};
  }
  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t length) const override {
    std::uint64_t bytes = 0;
    ++asked;
    for (const std::uint64_t block : cached_) {
      if (block * kBlock >= offset && block * kBlock < offset + length) bytes += 4096;
    }
    return bytes;
  }
  void give_back(std::uint64_t offset, std::uint64_t length) const override {
    given_back.emplace_back(offset / kMiB, length / kMiB);
  }

  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> given_back;
  mutable int asked = 0;

 private:
  std::string name_ = "in/f";
  std::set<std::uint64_t> cached_;
};

using Blocks = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(ReadPages, GoOnceAllOfABlockIsRead) {
  const CachedFile file({});
  ReadPages pages(file, is_short_now);
  pages.begin(file);
  pages.add(file, 3 * kMiB, 2 * kMiB);  // ends in the second block
  EXPECT_THAT(file.given_back, IsEmpty());
  pages.add(file, 0, 3 * kMiB);
  EXPECT_EQ(file.given_back, (Blocks{{0, 4}}));
  pages.add(file, 5 * kMiB, 13 * kMiB);
  EXPECT_EQ(file.given_back, (Blocks{{0, 4}, {4, 4}, {8, 4}, {12, 4}, {16, 2}}));
  pages.finish(file);
  EXPECT_EQ(file.given_back.size(), 5U) << "each is given back once";
}

TEST(ReadPages, OfOthersStay) {
  const CachedFile file({0, 2});
  ReadPages pages(file, is_short_now);
  pages.begin(file);
  pages.add(file, 0, 18 * kMiB);
  pages.finish(file);
  EXPECT_EQ(file.given_back, (Blocks{{4, 4}, {12, 4}, {16, 2}}));
}

// Of the hundreds of files of a large model, planning reads the heads.
TEST(ReadPages, AreAskedAboutOneByOneOnlyWhereAllIsRead) {
  const CachedFile file({0});
  ReadPages pages(file, is_short_now);
  EXPECT_EQ(file.asked, 1);
  pages.finish(file);
  EXPECT_EQ(file.asked, 1);
  pages.begin(file);
  pages.begin(file);
  EXPECT_EQ(file.asked, 1 + 5);
  const CachedFile cold({});
  ReadPages(cold, is_short_now).begin(cold);
  EXPECT_EQ(cold.asked, 1) << "where nothing was there, nothing is in any part";
}

// What is known of a file without opening it was not read here: what was there is found out when it
// is.
TEST(ReadPages, OfAFileThatIsNotOpenYetAreAskedAboutLater) {
  class LateFile final : public ReadableFile {
   public:
    std::uint64_t size() const override { return kBlock; }
    const std::string& name() const override { return name_; }
    Status read_at(std::uint64_t /*offset*/, std::span<std::byte> /*buffer*/) const override {
      return {};
    }
    bool is_open() const override { return false; }
    std::optional<std::uint64_t> cached_bytes(std::uint64_t /*offset*/,
                                              std::uint64_t /*length*/) const override {
      ++asked;
      return 0;
    }
    void give_back(std::uint64_t offset, std::uint64_t length) const override {
      given_back.emplace_back(offset, length);
    }

    mutable int asked = 0;
    mutable Blocks given_back;

   private:
    std::string name_;
  };
  const LateFile file;
  ReadPages pages(file, is_short_now);
  EXPECT_EQ(file.asked, 0);
  pages.begin(file);
  EXPECT_EQ(file.asked, 1);
  pages.add(file, 0, kBlock);
  EXPECT_EQ(file.given_back, (Blocks{{0, kBlock}}));
}

TEST(ReadPages, StayWhileMemoryIsFree) {
  static bool is_short = false;
  const CachedFile file({});
  ReadPages pages(file, [] { return is_short; });
  pages.begin(file);
  pages.add(file, 0, 2 * kBlock);
  pages.add(file, 2 * kBlock, kBlock - 1);
  EXPECT_THAT(file.given_back, IsEmpty());
  is_short = true;
  pages.add(file, 3 * kBlock - 1, 1);
  EXPECT_EQ(file.given_back, (Blocks{{0, 4}, {4, 4}, {8, 4}})) << "with those read before";
}

TEST(ReadPages, OfWhatWasReadInPartGoInTheEnd) {
  const CachedFile file({});
  ReadPages pages(file, is_short_now);
  pages.begin(file);
  pages.add(file, kBlock + 100, 5);
  EXPECT_THAT(file.given_back, IsEmpty());
  pages.finish(file);
  EXPECT_EQ(file.given_back, (Blocks{{4, 4}})) << "nothing else was read";
  ReadPages kept(file, is_not_short);
  kept.begin(file);
  kept.add(file, 100, 5);
  kept.finish(file);
  EXPECT_EQ(file.given_back.size(), 1U);
}

TEST(ReadPages, OfAFileThatTellsNothingStay) {
  class Silent final : public ReadableFile {
   public:
    std::uint64_t size() const override { return kBlock; }
    const std::string& name() const override { return name_; }
    Status read_at(std::uint64_t /*offset*/, std::span<std::byte> /*buffer*/) const override {
      return {};
    }
    void give_back(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {
      ADD_FAILURE() << "nobody knows whose they are";
    }

   private:
    std::string name_;
  };
  const Silent file;
  ReadPages pages(file, is_short_now);
  pages.begin(file);
  pages.add(file, 0, kBlock);
  pages.finish(file);
}

// Files are closed and opened again in between: what others had is judged once.
TEST(SourceFiles, GiveBackWhatTheyReadLast) {
  MemoryDirectory memory;
  for (const char* name : {"a", "b"}) memory.put(name, std::string(2 * kBlock, 'x'));
  const RecordingDirectory folder(memory);
  SourceFiles files(folder, {"a", "b"}, 1);
  files.judge_memory_by(is_short_now);
  std::vector<std::byte> half(kBlock / 2);
  ASSERT_TRUE(files.read_at(0, 0, half));
  ASSERT_TRUE(files.read_at(0, kBlock / 2, half));
  EXPECT_THAT(folder.records().at("a").given_back, IsEmpty()) << "it will be read again";
  {
    const LastReading last(files);
    for (std::uint64_t offset = 0; offset < 2 * kBlock; offset += kBlock / 2) {
      ASSERT_TRUE(files.read_at(0, offset, half));
      ASSERT_TRUE(
          files.read_at(1, offset, std::span(half).first(offset < kBlock ? kBlock / 2 : 1)));
    }
    EXPECT_EQ(folder.records().at("a").given_back.size(), 2U);
    EXPECT_EQ(folder.records().at("b").given_back.size(), 1U);
  }
  EXPECT_EQ(folder.records().at("a").given_back.size(), 2U);
  EXPECT_EQ(folder.records().at("b").given_back.size(), 2U) << "with what was begun";
}

// The system call itself; where it is not there or not allowed, that is said.
TEST(LocalFile, TellsWhatIsInThePageCache) {
  const TemporaryFolder place;
  place.put("f", std::string(100'000, 'x'));
  const auto folder = open_local_directory(place.path().string()).value();
  const auto file = folder->open("f").value();
  const std::optional<std::uint64_t> cached = file->cached_bytes(0, file->size());
  if (cached) {
    EXPECT_GE(*cached, 100'000U) << "it was just written";
    EXPECT_LE(*cached, 1U << 20);
  }
  file->give_back(0, file->size());
  std::byte byte{};
  EXPECT_TRUE(file->read_at(99'999, std::span(&byte, 1)));
}

}  // namespace
}  // namespace shardwright
