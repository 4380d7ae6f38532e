// SPDX-License-Identifier: Apache-2.0
#include "base/shell_path.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(ShellPath, IsNoFlag) {
  EXPECT_EQ(shell_path("-x"), "./-x");
  EXPECT_EQ(shell_path("--to hf"), "'./--to hf'");
  EXPECT_EQ(shell_path("a/-x"), "a/-x");
  EXPECT_EQ(shell_path("a b"), "'a b'");
}

}  // namespace
}  // namespace shardwright
