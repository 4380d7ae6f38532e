// SPDX-License-Identifier: Apache-2.0
#include "io/known_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "base/endian.h"

namespace shardwright {
namespace {

// What is known from `offset` on, if all of it is.
std::string known_of(const KnownBytes& known, std::uint64_t offset, std::size_t length) {
  std::string bytes(length, '?');
  return known.copy("in/f", offset, std::as_writable_bytes(std::span(bytes))) ? bytes : "unknown";
}

class KnownBytesOfAFile : public testing::Test {
 protected:
  KnownBytesOfAFile() { known_.add_file("in/f", version_); }

  FileVersion version_{1, 2, 1000, 3, 4};
  KnownBytes known_{100};
};

TEST_F(KnownBytesOfAFile, AreWhatWasReadInAnyPieces) {
  known_.add("in/f", 4, as_bytes("efgh"));
  known_.add("in/f", 8, as_bytes("ij"));
  known_.add("in/f", 16, as_bytes("q"));
  EXPECT_EQ(known_of(known_, 4, 6), "efghij");
  EXPECT_EQ(known_of(known_, 5, 4), "fghi");
  EXPECT_EQ(known_of(known_, 16, 1), "q");
  EXPECT_EQ(known_of(known_, 3, 2), "unknown");
  EXPECT_EQ(known_of(known_, 8, 3), "unknown");
  EXPECT_EQ(known_of(known_, 17, 1), "unknown");
  EXPECT_EQ(known_of(known_, 17, 0), "");
  std::string other(1, '?');
  EXPECT_FALSE(known_.copy("in/g", 4, std::as_writable_bytes(std::span(other))));
}

TEST_F(KnownBytesOfAFile, AreKeptOnceHoweverReadsOverlap) {
  known_.add("in/f", 4, as_bytes("efgh"));
  known_.add("in/f", 12, as_bytes("mn"));
  known_.add("in/f", 2, as_bytes("cdefghijklmnop"));
  known_.add("in/f", 5, as_bytes("fg"));
  EXPECT_EQ(known_of(known_, 2, 14), "cdefghijklmnop");
  // All of it is 14 bytes: 36 more are half of 100.
  known_.add("in/f", 16, as_bytes(std::string(36, 'x')));
  EXPECT_EQ(known_of(known_, 16, 36), std::string(36, 'x'));
}

TEST_F(KnownBytesOfAFile, AFileLeavesRoomForOthers) {
  known_.add_file("in/g", version_);
  known_.add("in/f", 0, as_bytes(std::string(51, 'x')));
  EXPECT_EQ(known_of(known_, 0, 1), "unknown");
  known_.add("in/f", 0, as_bytes(std::string(40, 'x')));
  known_.add("in/f", 40, as_bytes(std::string(11, 'x')));
  EXPECT_EQ(known_of(known_, 0, 40), std::string(40, 'x'));
  EXPECT_EQ(known_of(known_, 40, 1), "unknown");
  std::string bytes(30, '?');
  known_.add("in/g", 0, as_bytes(std::string(31, 'y')));
  EXPECT_FALSE(known_.copy("in/g", 0, std::as_writable_bytes(std::span(bytes))));
  known_.add("in/g", 0, as_bytes(std::string(30, 'y')));
  EXPECT_TRUE(known_.copy("in/g", 0, std::as_writable_bytes(std::span(bytes))));
}

TEST_F(KnownBytesOfAFile, AreTheSameInAMessage) {
  known_.add("in/f", 4, as_bytes("efgh"));
  known_.add("in/f", 16, as_bytes(std::string("\0q", 2)));
  known_.add_file("in/empty", {.size_bytes = 0, .modified_ns = -7});
  KnownBytes other(100);
  ASSERT_TRUE(other.add_message(known_.message()));
  EXPECT_EQ(known_of(other, 4, 4), "efgh");
  EXPECT_EQ(known_of(other, 16, 2), std::string("\0q", 2));
  EXPECT_EQ(known_of(other, 8, 1), "unknown");
  // Numbers of files and devices are each machine's own.
  EXPECT_EQ(other.find("in/f"), (FileVersion{0, 0, 1000, 3, 0}));
  EXPECT_EQ(other.find("in/empty"), (FileVersion{0, 0, 0, -7, 0}));
  EXPECT_EQ(other.find("in/g"), std::nullopt);
  EXPECT_EQ(other.message(), known_.message());
  EXPECT_EQ(KnownBytes().add_message(known_.message().substr(0, 30)).error().code, Code::kInternal);
}

TEST_F(KnownBytesOfAFile, AreForgottenForGood) {
  known_.add("in/f", 4, as_bytes("efgh"));
  known_.forget();
  EXPECT_EQ(known_.find("in/f"), std::nullopt);
  EXPECT_EQ(known_of(known_, 4, 4), "unknown");
  known_.add_file("in/f", version_);
  known_.add("in/f", 4, as_bytes("efgh"));
  EXPECT_EQ(known_.message(), KnownBytes().message());
}

}  // namespace
}  // namespace shardwright
