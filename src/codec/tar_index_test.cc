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

TEST(TarIndex, NamesTheWayOutOfACompressedArchive) {
  const Error error = refused("\x1f\x8b" + std::string(600, 'x'));
  EXPECT_EQ(error.code, Code::kUnsupportedFormat);
  EXPECT_THAT(error.message, HasSubstr("unpack it"));
}

}  // namespace
}  // namespace shardwright
