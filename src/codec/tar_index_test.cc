// SPDX-License-Identifier: Apache-2.0
#include "codec/tar_index.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A header as ustar has it. The checksum is the sum of its bytes with blanks in its own place.
std::string tar_header(const std::string& name, std::size_t size, char type = '0') {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(100, 8, std::string("0000644\0", 8));
  block.replace(124, 12, fmt::format("{:011o}", size) + '\0');
  block[156] = type;
  block.replace(257, 8, std::string("ustar\00000", 8));
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

std::string tar_entry(const std::string& name, const std::string& contents, char type = '0') {
  std::string padded = contents;
  padded.resize((contents.size() + 511) / 512 * 512);
  return tar_header(name, contents.size(), type) + padded;
}

Result<std::vector<TarEntry>> index_of(std::string bytes) {
  return read_tar(*make_memory_file("a.nemo", std::move(bytes)));
}

std::vector<std::string> names_of(const std::string& bytes) {
  std::vector<std::string> names;
  const std::vector<TarEntry> entries = index_of(bytes).value();
  for (const TarEntry& entry : entries) names.push_back(entry.name);
  return names;
}

Error refused(const std::string& bytes) {
  const auto found = index_of(bytes);
  EXPECT_FALSE(found);
  return found ? Error() : found.error();
}

const std::string kEnd(1024, '\0');

TEST(TarIndex, SaysWhereFilesLie) {
  const auto found = index_of(tar_entry("./", "", '5') + tar_entry("./a.yaml", "12345") +
                              tar_entry("mp_rank_00/model_weights.ckpt", "xyz") + kEnd)
                         .value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a.yaml");
  EXPECT_EQ(found[0].offset, 1024U);
  EXPECT_EQ(found[0].length, 5U);
  EXPECT_EQ(found[1].name, "mp_rank_00/model_weights.ckpt");
  EXPECT_EQ(found[1].offset, 2048U);
  EXPECT_THAT(names_of(kEnd), IsEmpty());
}

TEST(TarIndex, TakesLongNamesOfBothKinds) {
  const std::string name = std::string(120, 'a') + "/b";
  EXPECT_THAT(names_of(tar_entry("././@LongLink", name + '\0', 'L') + tar_entry("short", "1") +
                       tar_entry("next", "2") + kEnd),
              ElementsAre(name, "next"));
  const std::string record = fmt::format("{} path={}\n", 8 + name.size() + 2, name);
  ASSERT_EQ(record.size(), 8 + name.size() + 2);
  EXPECT_THAT(names_of(tar_entry("PaxHeaders/short", record, 'x') + tar_entry("short", "1") + kEnd),
              ElementsAre(name));
}

TEST(TarIndex, TakesSizesOfPaxHeaders) {
  const auto found = index_of(tar_entry("p", "10 size=3\n", 'x') + tar_header("a", 0) + "abc" +
                              std::string(509, '\0') + tar_entry("b", "1") + kEnd)
                         .value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].length, 3U);
  EXPECT_EQ(found[1].name, "b");
}

TEST(TarIndex, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "a//b"}) {
    EXPECT_EQ(refused(tar_entry(name, "1") + kEnd).code, Code::kPathEscapes) << name;
  }
}

TEST(TarIndex, RefusesWhatIsNoFile) {
  EXPECT_EQ(refused(tar_entry("a", "", '2') + kEnd).code, Code::kNotAFile);
  EXPECT_EQ(refused(tar_entry("a", "", '1') + kEnd).code, Code::kNotAFile);
  EXPECT_EQ(refused(tar_entry("a", "", 'S') + kEnd).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(tar_entry("a", "1") + tar_entry("./a", "2") + kEnd).code, Code::kDuplicateName);
}

TEST(TarIndex, RefusesDamage) {
  const std::string whole = tar_entry("a", std::string(600, 'x')) + kEnd;
  std::string flipped = whole;
  flipped[0] = 'b';
  EXPECT_EQ(refused(flipped).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(whole.substr(0, 900)).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(whole.substr(0, 100)).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(tar_entry("p", "9 size=x\n", 'x') + kEnd).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(tar_entry("p", "99 path=a\n", 'x') + kEnd).code, Code::kTarCorrupt);
  EXPECT_EQ(refused(tar_entry("p", "0 \n", 'x') + kEnd).code, Code::kTarCorrupt);
}

// The same header with other bytes in a place, and the checksum that is right again.
std::string tar_header_with(std::string block, std::size_t at, const std::string& bytes) {
  block.replace(at, bytes.size(), bytes);
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  return block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

TEST(TarIndex, TakesSizesInTheBinaryFormOfGnu) {
  const std::string big = '\x80' + std::string(9, '\0') + std::string("\x02\x58", 2);  // 600
  const auto found = index_of(tar_header_with(tar_header("a", 0), 124, big) +
                              std::string(1024, 'x') + tar_entry("b", "1") + kEnd)
                         .value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].length, 600U);
  EXPECT_EQ(found[1].offset, 512U + 1024U + 512U);
  for (const std::string& wrong :
       {'\x80' + std::string(2, '\0') + std::string(9, '\xff'), '\x81' + std::string(11, '\0'),
        std::string(12, '\xff'), '\x80' + std::string(3, '\0') + std::string(8, '\x7f'),
        std::string(12, ' '), std::string("9") + std::string(11, '\0')}) {
    EXPECT_EQ(refused(tar_header_with(tar_header("a", 0), 124, wrong) + kEnd).code,
              Code::kTarCorrupt);
  }
}

TEST(TarIndex, TakesThePrefixOfLongNames) {
  EXPECT_THAT(names_of(tar_header_with(tar_header("b", 0), 345, "deep/folder") + kEnd),
              ElementsAre("deep/folder/b"));
  EXPECT_EQ(refused(tar_header_with(tar_header("b", 0), 345, "..") + kEnd).code,
            Code::kPathEscapes);
}

TEST(TarIndex, PassesOverWhatDescribesTheWholeArchive) {
  EXPECT_THAT(names_of(tar_entry("pax_global_header", "19 path=../escaped\n", 'g') +
                       tar_entry("././@LongLink", "../target", 'K') + tar_entry("a", "1") + kEnd),
              ElementsAre("a"));
}

TEST(TarIndex, RefusesDescriptionsThatAreNone) {
  for (const char* records : {"path=a\n", "5path\n", "-7 path=a\n", "7 path=", "10 path=abc", "2 ",
                              "11 path=ab\n9", "11 size=-1\n", "11 size=1x\n\n",
                              "22 GNU.sparse.major=1\n", "99999999999999999999 path=a\n"}) {
    EXPECT_EQ(refused(tar_entry("p", records, 'x') + tar_entry("a", "1") + kEnd).code,
              Code::kTarCorrupt)
        << records;
  }
  const std::string endless((1U << 20) + 1, 'n');
  EXPECT_EQ(refused(tar_entry("././@LongLink", endless, 'L') + kEnd).code, Code::kLimit);
  EXPECT_EQ(refused(tar_header("././@LongLink", 1U << 20, 'L') + kEnd).code, Code::kTarCorrupt);
}

TEST(TarIndex, NamesTheWayOutOfACompressedArchive) {
  for (const std::string magic : {"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh9", "\xfd\x37zXZ"}) {
    const Error error = refused(magic + std::string(600, 'x'));
    EXPECT_EQ(error.code, Code::kUnsupportedFormat) << magic;
    EXPECT_THAT(error.message, HasSubstr("unpack it"));
  }
}

}  // namespace
}  // namespace shardwright
