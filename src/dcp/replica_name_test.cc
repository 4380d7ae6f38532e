// SPDX-License-Identifier: Apache-2.0
#include "dcp/replica_name.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(ReplicaName, IsATensorAndARank) {
  const auto name = parse_replica_name("optimizer.state.exp_avg.a.weight.__tp_replica_13");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->tensor, "optimizer.state.exp_avg.a.weight");
  EXPECT_EQ(name->replica, 13);
  EXPECT_FALSE(name->is_shadow);
  EXPECT_EQ(parse_replica_name("a.__tp_replica_0")->replica, 0);
}

TEST(ReplicaName, IsAShadowOfATensorOrOfACopy) {
  const auto shadow = parse_replica_name("__shadow_13__a.weight");
  ASSERT_TRUE(shadow);
  EXPECT_EQ(shadow->tensor, "a.weight");
  EXPECT_EQ(shadow->replica, std::nullopt);
  EXPECT_TRUE(shadow->is_shadow);
  const auto both = parse_replica_name("__shadow_3__a.weight.__tp_replica_1");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->tensor, "a.weight");
  EXPECT_EQ(both->replica, 1);
  EXPECT_TRUE(both->is_shadow);
}

TEST(ReplicaName, IsNothingElse) {
  for (const char* other :
       {"a.weight", "__shadow___a", "__shadow_1_a", "__shadow_x__a", "__shadow_1",
        "a.__shadow_1__b", "a__tp_replica_1", "__shadow_-1__a", "__shadow_01__a"}) {
    EXPECT_FALSE(parse_replica_name(other)) << other;
    EXPECT_FALSE(has_replica_mark(other)) << other;
  }
}

// Marked, but not as anybody writes them: to be told of, not to be folded.
TEST(ReplicaName, MayBeMalformed) {
  for (const char* marked :
       {"a.__tp_replica_", "a.__tp_replica_x", "a.__tp_replica_1x", "a.__tp_replica_-1",
        "a.__tp_replica_01", "a.__tp_replica_+1", ".__tp_replica_1", "a.__tp_replica_1.weight",
        "a.__tp_replica_1.__tp_replica_0", "__shadow_1__", "__shadow_0____shadow_0__b",
        "__shadow_1__.__tp_replica_0", "a.__tp_replica_99999999999999999999"}) {
    EXPECT_FALSE(parse_replica_name(marked)) << marked;
    EXPECT_TRUE(has_replica_mark(marked)) << marked;
  }
}

}  // namespace
}  // namespace shardwright
