// SPDX-License-Identifier: Apache-2.0
#include "codec/base64.h"

#include <gtest/gtest.h>

#include "base/endian.h"

namespace shardwright {
namespace {

// The examples of RFC 4648.
TEST(Base64, IsTheStandards) {
  constexpr std::pair<const char*, const char*> kExamples[] = {{"", ""},
                                                               {"f", "Zg=="},
                                                               {"fo", "Zm8="},
                                                               {"foo", "Zm9v"},
                                                               {"foob", "Zm9vYg=="},
                                                               {"fooba", "Zm9vYmE="},
                                                               {"foobar", "Zm9vYmFy"},
                                                               {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : kExamples) {
    EXPECT_EQ(to_base64(as_bytes(std::string_view(bytes))), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, NothingElseIsTaken) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "Z===", "====", "=Zg=", "Zm9v\n", "Zm9v    ",
                           " Zm9vYm", "Zm9v-_8=", "Zg==Zg==", "Zm\n9"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
  EXPECT_EQ(from_base64(std::string_view("Zm9\0", 4)), std::nullopt);
}

}  // namespace
}  // namespace shardwright
