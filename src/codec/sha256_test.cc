// SPDX-License-Identifier: Apache-2.0
#include "codec/sha256.h"

#include <gtest/gtest.h>

#include "base/endian.h"

namespace shardwright {
namespace {

std::string sha256(const std::string& text, std::size_t piece) {
  Sha256 hash;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    hash.update(as_bytes(std::string_view(text).substr(at, piece)));
  }
  return hash.finish();
}

// The examples of FIPS 180-4, and the lengths around a block's end (of Python's hashlib).
TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  EXPECT_EQ(sha256(two, two.size()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(55, 'a'), 55),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256(std::string(64, 'a'), 64),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a'), 4096),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameInAnyPieces) {
  const std::string text(1000, 'x');
  for (const std::size_t piece : {1U, 7U, 63U, 64U, 65U, 130U, 1000U}) {
    EXPECT_EQ(sha256(text, piece), sha256(text, 1000)) << piece;
  }
}

}  // namespace
}  // namespace shardwright
