// SPDX-License-Identifier: Apache-2.0
#include "layout/object_set.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> lost(const std::vector<std::string>& names) {
  std::vector<std::string> sentences;
  for (const LostPart& part : lost_objects(names)) sentences.push_back(part.what);
  return sentences;
}

TEST(ObjectSet, IsTold) {
  const auto part = object_part_of("a/shard_7/b/shard_2.5_4.8").value();
  EXPECT_EQ(part.key, "a/shard_7/b");
  EXPECT_THAT(part.place, ElementsAre(2, 5));
  EXPECT_THAT(part.sizes, ElementsAre(4, 8));
  // The last was written before sizes had all axes.
  for (const char* name : {"a", "a/shard_4_4", "a/shard_", "a/shard_1", "a/shard_1_2x",
                           "a/shard_-1_2", "a/shard_0.1_4"}) {
    EXPECT_FALSE(object_part_of(name)) << name;
  }
}

TEST(ObjectSet, WithAllItsPartsHasLostNone) {
  EXPECT_THAT(lost({"a/shard_1_2", "a/shard_0_2", "rng_state/shard_0.0_1.2",
                    "common_state/shard_0_1", "rng_state/shard_0.1_1.2", "b", "c/shard_1.2_3"}),
              IsEmpty());
}

TEST(ObjectSet, WithoutOneIsNamed) {
  EXPECT_THAT(
      lost({"a/shard_0_4", "a/shard_1_4", "a/shard_3_4", "b/shard_0_1"}),
      ElementsAre(AllOf(HasSubstr("a: found 3 of the objects"), HasSubstr("a/shard_2_4 is"))));
  EXPECT_THAT(lost({"r/shard_0.0_2.2", "r/shard_0.1_2.2", "r/shard_1.0_2.2"}),
              ElementsAre(HasSubstr("r/shard_1.1_2.2 is")));
  EXPECT_THAT(lost({"r/shard_0.1_2.2", "r/shard_1.0_2.2", "r/shard_1.1_2.2"}),
              ElementsAre(HasSubstr("r/shard_0.0_2.2 is")));
  // No more is counted than is there.
  EXPECT_THAT(lost({"a/shard_0.0_9223372036854775807.9223372036854775807"}),
              ElementsAre(HasSubstr("a/shard_0.1_9223372036854775807.9223372036854775807 is")));
}

}  // namespace
}  // namespace shardwright
