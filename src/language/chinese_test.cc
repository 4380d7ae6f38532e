// SPDX-License-Identifier: Apache-2.0
#include "language/chinese.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/fail.h"
#include "base/translated.h"

namespace shardwright {
namespace {

TEST(ChineseSentence, IsFoundByItsEnglish) {
  EXPECT_EQ(chinese_sentence("message of a rank: {} numbers do not fit into it"),
            "来自 rank 的消息：容不下 {} 个数");
  EXPECT_EQ(chinese_sentence("nobody says this"), "");
}

TEST(ChineseSentence, SaysWhatTheSystemSays) {
  const Speaking speaking(chinese_sentence);
  EXPECT_EQ(fail_errno(ENOENT, "a.bin").error().message, "a.bin: 没有那个文件或目录");
}

}  // namespace
}  // namespace shardwright
