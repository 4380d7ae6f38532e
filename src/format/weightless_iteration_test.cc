// SPDX-License-Identifier: Apache-2.0
#include "format/weightless_iteration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shardwright/checkpoint.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

// A folder of a model is told by the names of its files.
void put_model(const TemporaryFolder& folder, const std::string& name) {
  folder.put(name + "/model.safetensors", "x");
}

TEST(WeightlessIteration, IsRefusedWithTheFolderThatHasTheWeights) {
  const TemporaryFolder folder;
  folder.put("run/checkpoint-5/iter_0000005/common.pt", "x");
  const std::string iteration = folder / "run/checkpoint-5/iter_0000005";
  const Error lost = locate_checkpoint(iteration).error();
  EXPECT_EQ(lost.code, Code::kNothingStored);
  EXPECT_THAT(lost.message, HasSubstr("checkpoint-5-merged has weights; see that the copy"));

  put_model(folder, "run/checkpoint-5-merged");
  for (const std::string& given : {iteration, folder / "run/checkpoint-5"}) {
    const Error merged = locate_checkpoint(given).error();
    EXPECT_EQ(merged.code, Code::kUnsupportedFormat);
    EXPECT_THAT(merged.message, HasSubstr("its weights are in " + folder / "run/checkpoint-5" +
                                          "-merged; give that folder"));
  }
  put_model(folder, "run/checkpoint-5");
  EXPECT_THAT(locate_checkpoint(iteration).error().message,
              HasSubstr("its weights are in " + folder / "run/checkpoint-5" + "; give"));
}

// Its own weights are not those of another iteration of the run.
TEST(WeightlessIteration, OtherIterationsHaveOtherWeights) {
  const TemporaryFolder folder;
  folder.put("run/iter_0000005/common.pt", "x");
  folder.put("run/iter_0000007/.metadata", "x");
  EXPECT_EQ(places_of_weights(folder / "run/iter_0000005").found, std::nullopt);
}

TEST(WeightlessIteration, ARunMeansTheMergedModel) {
  const TemporaryFolder folder;
  folder.put("run/checkpoint-5/iter_0000005/common.pt", "x");
  folder.put("run/checkpoint-5-merged/iter_0000005/.metadata", "x");
  const Location merged = locate_checkpoint(folder / "run").value();
  EXPECT_EQ(merged.path, folder / "run/checkpoint-5-merged/iter_0000005");
  EXPECT_THAT(merged.notes, testing::ElementsAre("checkpoint-5-merged is the model into which the "
                                                 "adapters of checkpoint-5 were merged"));
  put_model(folder, "run/checkpoint-5");
  EXPECT_EQ(locate_checkpoint(folder / "run").value().path, folder / "run/checkpoint-5");
}

// What other software reads of the newest save is said, whatever lies beside it.
TEST(WeightlessIteration, OtherSoftwaresSaveIsNotPassedOver) {
  const TemporaryFolder folder;
  folder.put("run/checkpoint-5/module-pipe_0", "x");
  put_model(folder, "run/checkpoint-5-merged");
  EXPECT_FALSE(locate_checkpoint(folder / "run"));
}

}  // namespace
}  // namespace shardwright
