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

TEST(IterationFolder, AnEpochsStepCountsThroughAllEpochs) {
  EXPECT_EQ(step_of_epoch("epoch_2_step_340"), 340);
  EXPECT_EQ(step_of_epoch("epoch-2_step-340"), 340) << "ColossalAI's";
  EXPECT_EQ(step_of_epoch("ep2-ba340"), 340) << "Composer's";
  for (const char* const name :
       {"epoch_2", "epoch_2_step_", "epoch_x_step_3", "step_3", "_step_3", "epoch_1_step_2_step_3",
        "epoch_1_step_3.tmp", "epoch-1_step_2", "ep1-ba2-rank0.pt"}) {
    EXPECT_EQ(step_of_epoch(name), std::nullopt) << name;
  }
  const std::vector<DirectoryEntry> entries = {{"epoch_0_step_99", true, 0},
                                               {"epoch_1_step_100", true, 0},
                                               {"epoch_0_step_9", true, 0},
                                               {"epoch_2_step_200", false, 1}};
  ASSERT_NE(latest_step_of_epochs(entries), nullptr);
  EXPECT_EQ(latest_step_of_epochs(entries)->name, "epoch_1_step_100");
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
