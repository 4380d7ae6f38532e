// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace shardwright {
namespace {

TEST(FailErrno, PicksTheCodeThatErrnoMeans) {
  const auto code_for = [](int os_errno) { return fail_errno(os_errno, "file").error().code; };
  EXPECT_EQ(code_for(ENOENT), Code::kNotFound);
  EXPECT_EQ(code_for(EROFS), Code::kPermission);
  EXPECT_EQ(code_for(ENOSPC), Code::kDiskFull);
  EXPECT_EQ(code_for(EDQUOT), Code::kDiskFull);
  EXPECT_EQ(code_for(EMFILE), Code::kTooManyFiles);
  EXPECT_EQ(code_for(EIO), Code::kIo);
}

}  // namespace
}  // namespace shardwright
