// SPDX-License-Identifier: Apache-2.0
#include "io/known_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/endian.h"
#include "io/source_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class KnownDirectory : public testing::Test {
 protected:
  KnownDirectory() {
    place_.put("in/a", "0123456789");
    place_.put("in/b", "abcdefghij");
  }

  std::unique_ptr<Directory> opened() const { return open_local_directory(place_ / "in").value(); }

  // What one process knows after it has read the beginning of `a` and all of `b`.
  std::shared_ptr<KnownBytes> known_after_reading() const {
    auto known = std::make_shared<KnownBytes>();
    const auto directory = noting_directory(opened(), known);
    std::string bytes(4, '?');
    EXPECT_TRUE(directory->open("a").value()->read_at(0, writable(bytes)));
    EXPECT_EQ(read_whole(*directory, "b", 100).value(), "abcdefghij");
    return known;
  }

  static std::span<std::byte> writable(std::string& bytes) {
    return std::as_writable_bytes(std::span(bytes));
  }
  static Result<std::string> read(SourceFiles& files, std::uint32_t file, std::uint64_t offset,
                                  std::size_t length) {
    std::string bytes(length, '?');
    SW_TRY(files.read_at(file, offset, writable(bytes)));
    return bytes;
  }

  TemporaryFolder place_;
};

TEST_F(KnownDirectory, AFileIsOpenedOnceMoreIsAskedForThanIsKnown) {
  const auto directory = knowing_directory(opened(), known_after_reading());
  SourceFiles files(*directory, {"a", "b"}, 8);
  EXPECT_EQ(read(files, 0, 1, 3).value(), "123");
  EXPECT_EQ(read(files, 1, 0, 10).value(), "abcdefghij");
  EXPECT_EQ(files.get(1).value()->size(), 10U);
  EXPECT_EQ(files.opens(), 0U);
  EXPECT_EQ(files.bytes_read(), 0U);
  EXPECT_EQ(read(files, 0, 2, 4).value(), "2345");
  EXPECT_EQ(read(files, 0, 8, 2).value(), "89");
  EXPECT_EQ(files.opens(), 1U);
  EXPECT_EQ(files.bytes_read(), 6U);
}

TEST_F(KnownDirectory, WhatIsForgottenIsRead) {
  const auto known = known_after_reading();
  const auto directory = knowing_directory(opened(), known);
  SourceFiles files(*directory, {"a", "b"}, 8);
  EXPECT_EQ(read(files, 1, 0, 10).value(), "abcdefghij");
  known->forget();
  EXPECT_EQ(read(files, 1, 0, 10).value(), "abcdefghij");
  EXPECT_EQ(read(files, 0, 0, 10).value(), "0123456789");
  EXPECT_EQ(files.opens(), 2U);
}

TEST_F(KnownDirectory, AFileThatNobodyReadIsOpenedAtOnce) {
  place_.put("in/c", "new");
  const auto directory = knowing_directory(opened(), known_after_reading());
  EXPECT_TRUE(directory->open("c").value()->is_open());
  EXPECT_FALSE(directory->open("a").value()->is_open());
  EXPECT_EQ(directory->open("d").error().code, Code::kNotFound);
}

TEST_F(KnownDirectory, AnotherFileThanWasReadIsRefused) {
  const auto known = known_after_reading();
  place_.put("in/a", "other");
  const auto directory = knowing_directory(opened(), known);
  const Error error = directory->open("a").error();
  EXPECT_EQ(error.code, Code::kRanksDiffer);
  EXPECT_THAT(error.message, HasSubstr("in/a: found 5 bytes, expected"));
  fs::last_write_time(place_.path() / "in/b",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(directory->open("b").error().code, Code::kRanksDiffer);
}

TEST_F(KnownDirectory, AFileThatChangesBeforeItIsOpenedIsRefused) {
  const auto directory = knowing_directory(opened(), known_after_reading());
  SourceFiles files(*directory, {"a"}, 8);
  EXPECT_EQ(read(files, 0, 0, 4).value(), "0123");
  place_.put("in/a", "012345678");
  EXPECT_EQ(read(files, 0, 0, 8).error().code, Code::kSourceChanged);
}

}  // namespace
}  // namespace shardwright
