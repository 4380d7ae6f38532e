// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/endian.h"
#include "io/faulty_directory.h"
#include "io/folder_view.h"
#include "io/known_directory.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "io/watched_directory.h"

namespace shardwright {
namespace {

/// Reads "in", writes it to "out/copy" in two writes.
Status copy(Directory& directory) {
  SW_TRY(directory.list(""));
  const auto source = SW_TRY(directory.open("in"));
  std::string bytes(source->size(), '\0');
  SW_TRY(source->read_at(0, std::as_writable_bytes(std::span(bytes))));
  auto target = SW_TRY(directory.create("out/copy", bytes.size()));
  const std::span<const std::byte> pieces[] = {as_bytes(bytes).first(2),
                                               as_bytes(bytes).subspan(2, 2)};
  SW_TRY(target->write_at(0, pieces));
  SW_TRY(target->write_at(4, as_bytes(bytes).subspan(4)));
  target->start_writeback(0, bytes.size());
  return target->sync();
}

TEST(FaultyDirectory, FailsEachOperationInTurn) {
  using enum Code;
  for (const auto duration :
       {FaultyDirectory::Duration::kOnce, FaultyDirectory::Duration::kForGood}) {
    // In order: list, open, read, create, two writes, sync.
    std::vector<Code> errors, shortened, full;
    for (std::uint64_t nth = 1; nth <= 7; ++nth) {
      for (const auto& [fault, codes] :
           {std::pair(Fault::kError, &errors), std::pair(Fault::kShorten, &shortened),
            std::pair(Fault::kNoSpace, &full)}) {
        MemoryDirectory fresh;
        fresh.put("in", "abcdefgh");
        FaultyDirectory faulty(fresh, fault, nth, duration);
        const Status status = copy(faulty);
        EXPECT_EQ(status.has_value(), !faulty.fired());
        if (!status) codes->push_back(status.error().code);
      }
    }
    EXPECT_THAT(errors, ::testing::ElementsAre(kIo, kIo, kIo, kIo, kIo, kIo, kIo));
    EXPECT_THAT(shortened, ::testing::ElementsAre(kIo, kIo, kShortRead, kIo, kIo, kIo, kIo));
    EXPECT_THAT(full, ::testing::ElementsAre(kDiskFull, kDiskFull, kDiskFull, kDiskFull));
  }
}

TEST(FaultyDirectory, LetsACleanRunPass) {
  MemoryDirectory inner;
  inner.put("in", "abcdefgh");
  FaultyDirectory faulty(inner, Fault::kError, 8);
  EXPECT_TRUE(copy(faulty));
  EXPECT_FALSE(faulty.fired());
  EXPECT_EQ(faulty.operations(), 7u);
  EXPECT_EQ(inner.contents("out/copy"), "abcdefgh");
  EXPECT_TRUE(faulty.exists("in"));
}

TEST(FaultyDirectory, AShortenedWriteDoesItsFirstHalf) {
  MemoryDirectory inner;
  inner.put("in", "abcdefgh");
  FaultyDirectory faulty(inner, Fault::kShorten, 6);
  EXPECT_EQ(copy(faulty).error().code, Code::kIo);
  EXPECT_EQ(inner.contents("out/copy"), std::string("abcdef\0\0", 8));
}

/// As a folder of a web server that shows no list of it.
class Unlisted final : public Directory {
 public:
  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    return inner_.open(path);
  }
  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    return inner_.create(path, size);
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return inner_.list(path);
  }
  bool lists_all() const override { return false; }
  bool exists(std::string_view path) const override { return inner_.exists(path); }
  const std::string& name() const override { return inner_.name(); }

 private:
  MemoryDirectory inner_;
};

TEST(Directory, IsAsUnlistedAsWhatItStandsFor) {
  EXPECT_TRUE(FolderView(std::make_shared<MemoryDirectory>(), "a").lists_all());
  EXPECT_FALSE(FolderView(std::make_shared<Unlisted>(), "a").lists_all());
  EXPECT_FALSE(WatchedDirectory(std::make_unique<Unlisted>()).lists_all());
  const auto known = std::make_shared<KnownBytes>();
  EXPECT_TRUE(noting_directory(std::make_unique<MemoryDirectory>(), known)->lists_all());
  EXPECT_FALSE(noting_directory(std::make_unique<Unlisted>(), known)->lists_all());
  EXPECT_FALSE(knowing_directory(std::make_unique<Unlisted>(), known)->lists_all());
  Unlisted unlisted;
  EXPECT_FALSE(RecordingDirectory(unlisted).lists_all());
}

TEST(RecordingDirectory, KeepsWhatWasDoneToEachFile) {
  MemoryDirectory inner;
  inner.put("in", "abcdefgh");
  RecordingDirectory recording(inner);
  ASSERT_TRUE(copy(recording));
  const auto records = recording.records();
  ASSERT_EQ(records.size(), 2u);
  const FileRecord& source = records.at("in");
  EXPECT_EQ(source.opens, 1);
  ASSERT_EQ(source.reads.size(), 1u);
  EXPECT_EQ(source.reads[0].offset, 0u);
  EXPECT_EQ(source.reads[0].length, 8u);
  const FileRecord& target = records.at("out/copy");
  EXPECT_EQ(target.creates, 1);
  EXPECT_EQ(target.syncs, 1);
  ASSERT_EQ(target.writes.size(), 2u);
  EXPECT_EQ(target.writes[0].length, 4u);
  EXPECT_EQ(target.writes[1].offset, 4u);
  EXPECT_EQ(recording.opens(), 1);
  EXPECT_EQ(recording.bytes_read(), 8u);
  EXPECT_EQ(recording.bytes_written(), 8u);
  EXPECT_FALSE(recording.open("absent"));
  EXPECT_EQ(recording.opens(), 1) << "a failed open is no open";
}

TEST(MemoryDirectory, ShowsACutFileToItsReaders) {
  MemoryDirectory directory;
  directory.put("data", "0123456789");
  const auto reader = directory.open("data").value();
  directory.truncate("data", 4);
  std::byte buffer[8];
  const Status status = reader->read_at(0, buffer);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kShortRead);
  EXPECT_THAT(status.error().message, ::testing::HasSubstr("4 bytes (10 when it was opened)"));
  directory.put("data", "new");
  EXPECT_EQ(directory.contents("data"), "new");
  EXPECT_THAT(directory.paths(), ::testing::ElementsAre("data"));
}

TEST(MemoryFile, ReadsItsBytes) {
  const auto file = make_memory_file("inner.pt", "abc");
  EXPECT_EQ(file->size(), 3u);
  EXPECT_EQ(file->name(), "inner.pt");
  std::byte last{};
  EXPECT_TRUE(file->read_at(2, std::span(&last, 1)));
  EXPECT_EQ(last, std::byte{'c'});
}

}  // namespace
}  // namespace shardwright
