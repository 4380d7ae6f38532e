// SPDX-License-Identifier: Apache-2.0
#include "layout/bucket_name.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(BucketName, IsTakenApart) {
  const auto domain = split_domain_name(
      "chained_1.optimizer.distributed.dp_group_idx_3.gbuf_idx_2.dtype_(torch.bfloat16, "
      "torch.float32).bucket_idx_10.exp_avg_sq");
  ASSERT_TRUE(domain);
  EXPECT_TRUE(domain->is_chained);
  EXPECT_EQ(domain->part, 1);
  EXPECT_EQ(domain->group, 3);
  const auto bucket = split_bucket_name(domain->rest);
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->buffer, 2);
  EXPECT_EQ(bucket->dtype, DType::kBF16);
  EXPECT_EQ(bucket->bucket, 10);
  EXPECT_EQ(bucket->state, "exp_avg_sq");
}

TEST(BucketName, MayBeOfTheOnlyOptimizer) {
  const auto domain =
      split_domain_name("optimizer.distributed.dp_group_idx_0.param_state/shard_0_1");
  ASSERT_TRUE(domain);
  EXPECT_FALSE(domain->is_chained);
  EXPECT_EQ(domain->part, 0);
  EXPECT_EQ(domain->rest, "param_state/shard_0_1");
  EXPECT_FALSE(split_bucket_name(domain->rest));
}

TEST(BucketName, IsNoOtherName) {
  for (const char* name :
       {"optimizer.state.param.x", "chained_.optimizer.distributed.x",
        "chained_1optimizer.distributed.dp_group_idx_0.x", "optimizer.distributed.dp_group_idx_.x",
        "optimizer.distributed.dp_group_idx_1"}) {
    EXPECT_FALSE(split_domain_name(name)) << name;
  }
  for (const char* rest : {"gbuf_idx_0.dtype_(torch.what, torch.float32).bucket_idx_0.param",
                           "gbuf_idx_0.dtype_(torch.bfloat16).bucket_idx_0.param",
                           "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_.param",
                           "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).param"}) {
    EXPECT_FALSE(split_bucket_name(rest)) << rest;
  }
}

}  // namespace
}  // namespace shardwright
