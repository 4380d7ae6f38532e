// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "base/endian.h"

namespace shardwright {
namespace {

TEST(Crc32, GivesThePublishedCheckValue) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32(as_bytes("6789"), crc32(as_bytes("12345"))), 0xCBF43926u);
}

RC_GTEST_PROP(Crc32, CombinesTwoParts, (const std::string& a, const std::string& b)) {
  RC_ASSERT(crc32_combine(crc32(as_bytes(a)), crc32(as_bytes(b)), b.size()) ==
            crc32(as_bytes(a + b)));
}

// Bit by bit, as the standard defines it.
std::uint32_t slow_crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

// Around every length at which wide instructions begin, go on, or leave a rest.
TEST(Crc32, IsTheSameAtEveryLength) {
  std::vector<std::byte> bytes(1601);
  std::uint32_t noise = 1;
  for (std::byte& byte : bytes) {
    noise = noise * 1664525 + 1013904223;
    byte = static_cast<std::byte>(noise >> 24);
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto part = std::span(bytes).subspan(length % 16 == 0 ? 0 : 1, length);
    for (const std::uint32_t crc : {0u, 0xCBF43926u}) {
      ASSERT_EQ(crc32(part, crc), slow_crc32(part, crc)) << length;
    }
  }
}

RC_GTEST_PROP(Crc32, SharesAddUpInAnyOrder,
              (const std::string& a, const std::string& b, const std::string& c)) {
  const std::uint32_t last = crc32(as_bytes(c));
  const std::uint32_t first = crc32_share(crc32(as_bytes(a)), b.size() + c.size());
  const std::uint32_t middle = crc32_share(crc32(as_bytes(b)), c.size());
  RC_ASSERT((last ^ first ^ middle) == crc32(as_bytes(a + b + c)));
}

TEST(Crc32, CombinesAcrossFourGibibytes) {
  // 2^32 - 1 is the period of the register, so that many zero bytes leave it as it was.
  const std::uint32_t a = crc32(as_bytes("abc"));
  const std::uint64_t period = 0xFFFFFFFF;
  const std::uint32_t zeros = crc32_combine(crc32(as_bytes(std::string(7, '\0'))), 0, period);
  EXPECT_EQ(zeros, crc32(as_bytes(std::string(7, '\0'))));
  EXPECT_EQ(crc32_combine(a, crc32(as_bytes("de")), period + 2), crc32(as_bytes("abcde")))
      << "one period more changes nothing";
}

}  // namespace
}  // namespace shardwright
