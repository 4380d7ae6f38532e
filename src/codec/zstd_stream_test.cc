// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <string>

#include "base/endian.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

std::string packed(const std::string& bytes, int layers = 1, bool tells_size = true) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, tells_size ? 1 : 0);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
  ZSTD_freeCCtx(context);
  return layers == 1 ? out : packed(out, layers - 1, tells_size);
}

struct Outcome {
  Status status;
  std::string bytes;
};

Outcome decoded(const std::string& frames, std::uint64_t most_bytes = 1 << 20, int layers = 4) {
  const auto file = make_memory_file("__0_0.distcp", "xx" + frames);
  Outcome outcome;
  outcome.status = decode_zstd(*file, {2, frames.size()}, most_bytes, layers,
                               [&](std::span<const std::byte> bytes) -> Status {
                                 for (const std::byte byte : bytes) {
                                   outcome.bytes += static_cast<char>(byte);
                                 }
                                 return {};
                               });
  return outcome;
}

TEST(Zstd, GivesBackWhatWasPackedOnceOrSeveralTimes) {
  for (const std::string& bytes :
       {std::string("PK and some bytes"), std::string("abc"), std::string(),
        std::string(500'000, 'z'), std::string("\x28\xb5\x2f")}) {
    for (int layers = 1; layers <= 4; ++layers) {
      const Outcome outcome = decoded(packed(bytes, layers));
      ASSERT_TRUE(outcome.status) << layers << " " << outcome.status.error().text();
      EXPECT_EQ(outcome.bytes, bytes) << layers;
    }
  }
  const Outcome five = decoded(packed("abcdefg", 5));
  EXPECT_EQ(five.status.error().code, Code::kItemTransformed);
  EXPECT_THAT(five.status.error().message, HasSubstr("more layers of zstd"));
}

TEST(Zstd, AFrameThatSaysTooMuchGivesNothing) {
  const Outcome told = decoded(packed(std::string(2 << 20, '\0')));
  EXPECT_EQ(told.status.error().code, Code::kLimit);
  EXPECT_THAT(told.status.error().message, HasSubstr("__0_0.distcp@2: found 2097152 bytes"));
  EXPECT_EQ(told.bytes, "") << "refused before it is decoded";
}

TEST(Zstd, WhatIsDecodedIsCountedWhereNoFrameSaysIt) {
  const Outcome untold = decoded(packed(std::string(2 << 20, '\0'), 1, false));
  EXPECT_EQ(untold.status.error().code, Code::kLimit);
  EXPECT_LE(untold.bytes.size(), std::size_t{1} << 20);
  // Two small layers that give much, and two frames one behind the other.
  const std::string layered = packed(std::string(64 << 20, '\0'), 2, false);
  ASSERT_LT(layered.size(), 1000u);
  EXPECT_EQ(decoded(layered).status.error().code, Code::kLimit);
  const std::string half = packed(std::string(600'000, 'a'));
  EXPECT_TRUE(decoded(half).status);
  EXPECT_EQ(decoded(half + half).status.error().code, Code::kLimit);
}

TEST(Zstd, RefusesDamage) {
  std::string frames = packed(std::string(1000, 'q') + "rest");
  EXPECT_EQ(decoded(frames.substr(0, frames.size() - 1)).status.error().code,
            Code::kItemTransformed);
  frames[0] = 'B';
  EXPECT_EQ(decoded(frames).status.error().code, Code::kItemTransformed);
}

}  // namespace
}  // namespace shardwright
