// SPDX-License-Identifier: Apache-2.0
#include "layout/state_name.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(StateName, SaysWhichStateOfWhichTensor) {
  const StateName state = split_state_name("chained_1.optimizer.state.exp_avg_sq.a.b.c").value();
  EXPECT_EQ(state.prefix, "chained_1.optimizer.state.exp_avg_sq.");
  EXPECT_EQ(state.bare, "optimizer.state.exp_avg_sq.a.b.c");
  EXPECT_EQ(state.kind, "exp_avg_sq");
  EXPECT_EQ(state.tensor, "a.b.c");
  EXPECT_EQ(join_state_name(state.kind, state.tensor), state.bare);
}

TEST(StateName, IsTheSecondOneOfATensorWithTwo) {
  EXPECT_EQ(name_with_states("lm_head.output_layer.bias"), "output_layer.bias");
  EXPECT_EQ(name_with_states("embedding.position_embeddings.weight"), "position_embeddings.weight");
  EXPECT_EQ(name_with_states("lm_head.dense.weight"), "lm_head.dense.weight");
}

TEST(StateName, HasOneWordForMasterWeights) {
  EXPECT_EQ(split_state_name("optimizer.state.fp32_param.w")->kind, "param");
  EXPECT_EQ(split_state_name("optimizer.state.param.w")->kind, "param");
}

TEST(StateName, IsThatOfATensor) {
  EXPECT_FALSE(split_state_name("decoder.final_layernorm.weight"));
  EXPECT_FALSE(split_state_name("optimizer.state.step"));
  EXPECT_FALSE(split_state_name("optimizer.state.exp_avg."));
  EXPECT_FALSE(split_state_name("optimizer.distributed.dp_group_idx_0.x"));
}

}  // namespace
}  // namespace shardwright
