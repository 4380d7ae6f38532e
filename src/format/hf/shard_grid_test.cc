// SPDX-License-Identifier: Apache-2.0
#include "format/hf/shard_grid.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> notes_on(const std::vector<std::string>& files) {
  return shard_grid_notes(files);
}

TEST(ShardGrid, SaysThatEndsAreNotTold) {
  EXPECT_THAT(notes_on({"shard-00001-model-00001-of-00001.safetensors",
                        "shard-00002-model-00001-of-00001.safetensors"}),
              ElementsAre(HasSubstr("2 files hold parts of tensors")));
}

TEST(ShardGrid, NamesFilesOfRanksThatAreNotThere) {
  EXPECT_THAT(notes_on({"shard-00001-model-00001-of-00002.safetensors",
                        "shard-00001-model-00002-of-00002.safetensors",
                        "shard-00003-model-00001-of-00002.safetensors"}),
              ElementsAre(HasSubstr("not there: shard-00002-model-00001-of-00002.safetensors, "
                                    "shard-00002-model-00002-of-00002.safetensors, "
                                    "shard-00003-model-00002-of-00002.safetensors;"),
                          HasSubstr("3 files")));
}

TEST(ShardGrid, IsNoneOfOtherFiles) {
  EXPECT_THAT(
      notes_on({"model-00001-of-00002.safetensors", "model.safetensors",
                "shard-00001-model-00001-of-00001.bin", "shard-00000-model-1-of-1.safetensors",
                "shard-1-models-1-of-1.safetensors"}),
      IsEmpty());
  // Numbers beyond any save's are not counted through, of files or of ranks.
  EXPECT_THAT(notes_on({"shard-1-model-1-of-200000.safetensors"}),
              ElementsAre(HasSubstr("1 files")));
  EXPECT_THAT(notes_on({"shard-200000-model-1-of-1.safetensors"}),
              ElementsAre(HasSubstr("1 files")));
  EXPECT_THAT(notes_on({"shard-1-model-1-of-9223372036854775807.safetensors",
                        "shard-9223372036854775807-model-1-of-1.safetensors"}),
              ElementsAre(HasSubstr("2 files")));
}

}  // namespace
}  // namespace shardwright
