// SPDX-License-Identifier: Apache-2.0
#include "format/iteration_folder.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(IterationFolder, HasOneOfThreeNames) {
  for (const char* const name : {"iter_0000001", "iter_7", "step_12", "release"}) {
    EXPECT_TRUE(is_iteration_folder(name)) << name;
  }
  for (const char* const name : {"", "iter_", "iter_1x", "iter_-1", "step_1.tmp", "steps_1",
                                 "release2", "global_step_3", "1"}) {
    EXPECT_FALSE(is_iteration_folder(name)) << name;
  }
}

TEST(TrackerWord, HasTheSpaceTakenOffThatPythonTakesOff) {
  EXPECT_EQ(tracker_word(" \t10\r\n"), "10");
  EXPECT_EQ(tracker_word("\x1c"
                         "7\x1f"),
            "7");
  EXPECT_EQ(tracker_word(" \n"), "");
  const std::string_view with_nul("10\0", 3);
  EXPECT_EQ(tracker_word(with_nul), with_nul) << "int() refuses it, and so does Megatron";
}

}  // namespace
}  // namespace shardwright
