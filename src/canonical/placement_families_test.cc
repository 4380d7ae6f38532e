// SPDX-License-Identifier: Apache-2.0
#include "canonical/placement_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlacementFamilies, AreTheFilesOfTheFolder) {
  EXPECT_THAT(placement_families(),
              ElementsAre("deepseek_v4", "glm5", "kimi_k2", "qwen3_5", "qwen3_moe"));
  for (const std::string& family : placement_families()) {
    const auto rules = placement_rules_of(family);
    ASSERT_TRUE(rules) << rules.error().text();
    EXPECT_EQ(rules->family, family);
    EXPECT_EQ(to_string(rules->placements_of("layers.1.mlp.experts.fc2.weight0")),
              "[Replicate, Replicate, Shard(0), Shard(1)]");
  }
}

TEST(PlacementFamilies, AnUnknownOneIsNamed) {
  const auto rules = placement_rules_of("qwen3_mo");
  ASSERT_FALSE(rules);
  EXPECT_EQ(rules.error().code, Code::kNoFamily);
  EXPECT_THAT(rules.error().message, HasSubstr("qwen3_mo; there are for deepseek_v4, glm5"));
  EXPECT_THAT(rules.error().message, HasSubstr("did you mean qwen3_moe?"));
}

}  // namespace
}  // namespace shardwright
