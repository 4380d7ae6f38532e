// SPDX-License-Identifier: Apache-2.0
#include "io/record_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32.h"
#include "base/endian.h"
#include "io/faulty_directory.h"
#include "io/memory_directory.h"
#include "io/recording_directory.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string noise(std::size_t length) {
  std::string bytes(length, '\0');
  std::uint32_t state = 7;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

GuardedRecord record_of(const std::string& bytes, std::uint64_t offset, std::uint64_t length) {
  return {
      0, {offset, length}, crc32(as_bytes(bytes.substr(offset, length))), "a/data/0", "tensor w"};
}

Status read(SourceFiles& files, std::uint64_t offset, std::size_t length) {
  std::vector<std::byte> buffer(length);
  return files.read_at(0, offset, buffer);
}

Status read_rest(SourceFiles& files) {
  for (const FileRange& piece : files.unread_rest(1000)) {
    EXPECT_EQ(piece.file, 0u);
    EXPECT_LE(piece.range.length, 1000u);
    SW_TRY(read(files, piece.range.offset, piece.range.length));
  }
  return {};
}

TEST(RecordChecks, ForgetRecordsWithTheirNames) {
  const std::string bytes = noise(3000);
  RecordChecks checks;
  GuardedRecord record = record_of(bytes, 0, 500);
  for (const char* const name : {"a/data/0", "a/data/1"}) {
    record.name = name;
    record.range.offset += 500;
    checks.expect(record);
  }
  checks.clear();
  EXPECT_TRUE(checks.claim({0, {0, 3000}}).value().empty());
  record.crc ^= 1;
  checks.expect(record);
  RecordChecks::Claim claim = checks.claim({0, {0, 3000}}).value();
  claim.add(0, as_bytes(bytes));
  const Status status = checks.settle(claim);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("record 'a/data/1' of tensor w"));
}

TEST(RecordChecks, NamesARecordWhoseBytesWereAltered) {
  std::string bytes = noise(3000);
  MemoryDirectory folder;
  SourceFiles files(folder, {"f"}, 4);
  files.expect(record_of(bytes, 1000, 500));
  bytes[1200] ^= 1;
  folder.put("f", bytes);
  EXPECT_TRUE(read(files, 0, 1000)) << "before the record";
  EXPECT_TRUE(read(files, 1500, 1500)) << "behind it";
  const Status status = read(files, 0, 3000);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kPayloadDamaged);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("memory/f"), HasSubstr("record 'a/data/0' of tensor w"),
                    HasSubstr("500 bytes from 1000 on"), HasSubstr("found CRC-32")));
  EXPECT_FALSE(read(files, 1490, 2)) << "it does not become right by being read again";
  EXPECT_TRUE(read(files, 1500, 2));
}

TEST(RecordChecks, TakeNoBytesForNoneOfARecord) {
  std::string bytes = noise(3000);
  MemoryDirectory folder;
  SourceFiles files(folder, {"f"}, 4);
  files.expect(record_of(bytes, 1000, 500));
  bytes[1200] ^= 1;
  folder.put("f", bytes);
  EXPECT_TRUE(read(files, 1100, 0));
  EXPECT_THAT(files.unread_rest(1000), IsEmpty());
}

// Whatever is read in whatever pieces, as often as it may be: in the end a record of which a byte
// was read is right or an error, and each of its bytes was summed once.
RC_GTEST_PROP(RecordChecks, FindAFlippedBitHoweverTheBytesAreRead, ()) {
  const std::size_t size = 4096;
  std::string bytes = noise(size);
  MemoryDirectory folder;
  SourceFiles files(folder, {"f"}, 4);
  std::vector<ByteRange> records;
  for (std::uint64_t at = 0; at < size;) {
    const auto length = std::min<std::uint64_t>(*rc::gen::inRange(1, 1500), size - at);
    if (*rc::gen::inRange(0, 4) != 0) records.push_back({at, length});
    at += length;
  }
  for (std::size_t i = records.size(); i-- > 0;) {  // not in order
    files.expect(record_of(bytes, records[i].offset, records[i].length));
  }
  const auto flipped = static_cast<std::uint64_t>(*rc::gen::inRange(0, 2 * int{size}));
  if (flipped < size) bytes[flipped] ^= 0x40;
  folder.put("f", bytes);

  bool was_touched = false;
  bool failed = false;
  const auto touches = [&](std::uint64_t begin, std::uint64_t end) {
    return std::ranges::any_of(records, [&](const ByteRange& record) {
      const bool holds_it = record.offset <= flipped && flipped < record.offset + record.length;
      return holds_it && begin < record.offset + record.length && record.offset < end;
    });
  };
  for (int reads = *rc::gen::inRange(0, 12); reads > 0; --reads) {
    const auto begin = static_cast<std::uint64_t>(*rc::gen::inRange(0, int{size}));
    const auto length = std::min<std::uint64_t>(*rc::gen::inRange(0, 2000), size - begin);
    failed |= !read(files, begin, length);
    was_touched |= length > 0 && touches(begin, begin + length);
  }
  failed |= !read_rest(files);
  RC_ASSERT(failed == was_touched);
  RC_ASSERT(failed || files.unread_rest(1000).empty());
}

TEST(RecordChecks, AskAServerOnceForAReadAndSumItAllTheSame) {
  std::string bytes = noise(1 << 20);
  for (const bool is_remote : {false, true}) {
    MemoryDirectory folder;
    folder.put("f", bytes);
    RecordingDirectory recorded(folder, is_remote);
    SourceFiles files(recorded, {"f"}, 4);
    files.expect(record_of(bytes, 0, 1 << 20));
    ASSERT_TRUE(read(files, 0, 1 << 20));
    EXPECT_EQ(recorded.records().at("f").reads.size(), is_remote ? 1u : 4u);
    std::string altered = bytes;
    altered[1 << 19] ^= 1;
    MemoryDirectory other;
    other.put("f", altered);
    RecordingDirectory recorded_other(other, is_remote);
    SourceFiles wrong(recorded_other, {"f"}, 4);
    wrong.expect(record_of(bytes, 0, 1 << 20));
    EXPECT_FALSE(read(wrong, 0, 1 << 20));
  }
}

TEST(RecordChecks, ReadsInTheEndWhatIsMissingAndNothingElse) {
  const std::string bytes = noise(10000);
  MemoryDirectory folder;
  folder.put("f", bytes);
  RecordingDirectory recorded(folder);
  SourceFiles files(recorded, {"f"}, 4);
  files.expect(record_of(bytes, 0, 4000));
  files.expect(record_of(bytes, 4000, 4000));
  files.expect(record_of(bytes, 8000, 2000));
  ASSERT_TRUE(read(files, 100, 200));
  ASSERT_TRUE(read(files, 200, 300));
  ASSERT_TRUE(read(files, 9000, 1000));
  ASSERT_TRUE(read_rest(files));
  EXPECT_EQ(recorded.bytes_read(), 1500u + 100 + 3500 + 1000) << "the second record not at all";
  EXPECT_THAT(files.unread_rest(1000), IsEmpty());
}

TEST(RecordChecks, GiveUpWhatComesInTooManyPiecesAndReadItAtOnce) {
  constexpr std::size_t kSize = 200000;
  std::string bytes = noise(kSize);
  for (const bool altered : {false, true}) {
    MemoryDirectory folder;
    SourceFiles files(folder, {"f"}, 4);
    files.expect(record_of(noise(kSize), 0, kSize));
    if (altered) bytes[kSize / 2] ^= 1;
    folder.put("f", bytes);
    for (std::size_t at = 0; at < kSize; at += 4) ASSERT_TRUE(read(files, at, 2));
    EXPECT_EQ(read_rest(files).has_value(), !altered);
  }
}

TEST(RecordChecks, CountsRecordsThatOverlapEach) {
  std::string bytes = noise(3000);
  MemoryDirectory folder;
  folder.put("f", bytes);
  SourceFiles files(folder, {"f"}, 4);
  files.expect(record_of(bytes, 0, 3000));
  files.expect(record_of(bytes, 100, 50));
  files.expect(record_of(bytes, 120, 1000));
  GuardedRecord wrong = record_of(bytes, 2000, 100);
  wrong.crc += 1;
  files.expect(wrong);
  EXPECT_TRUE(read(files, 0, 2000));
  EXPECT_TRUE(read(files, 2050, 950));
  EXPECT_EQ(read_rest(files).error().code, Code::kPayloadDamaged);
}

TEST(RecordChecks, ForgetWhatAReadThatFailedHadClaimed) {
  std::string bytes = noise(3000);
  const GuardedRecord record = record_of(bytes, 0, 3000);
  bytes[10] ^= 1;
  MemoryDirectory folder;
  folder.put("f", bytes);
  FaultyDirectory faulty(folder, Fault::kError, 2);  // open, read
  SourceFiles files(faulty, {"f"}, 4);
  files.expect(record);
  EXPECT_EQ(read(files, 0, 2000).error().code, Code::kIo);
  EXPECT_TRUE(read(files, 0, 2000));
  EXPECT_TRUE(read(files, 2000, 1000));
  EXPECT_EQ(read_rest(files).error().code, Code::kPayloadDamaged);
}

TEST(RecordChecks, AreSafeForConcurrentUse) {
  constexpr std::size_t kSize = 1 << 20;
  const std::string bytes = noise(kSize);
  MemoryDirectory folder;
  folder.put("f", bytes);
  SourceFiles files(folder, {"f"}, 4);
  for (std::size_t at = 0; at < kSize; at += 1 << 16) files.expect(record_of(bytes, at, 1 << 16));
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t at = t * 512; at + 1000 <= kSize; at += 4096) {
        failures += read(files, at, 1000) ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
  EXPECT_TRUE(read_rest(files));
  EXPECT_THAT(files.unread_rest(1000), IsEmpty());
}

}  // namespace
}  // namespace shardwright
