// SPDX-License-Identifier: Apache-2.0
#include "codec/crc32.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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
