// SPDX-License-Identifier: Apache-2.0
#include "layout/state_sharding.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kOfTensors = {
    "decoder.final_layernorm.weight", "optimizer.state.exp_avg.decoder.final_layernorm.weight"};
const std::vector<std::string> kInBuckets = {
    "decoder.final_layernorm.weight",
    "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
    "torch.float32).bucket_idx_0.exp_avg"};

TEST(StateSharding, IsWhatTheStatesAre) {
  for (const char* of_tensors : {"fully_reshardable", "fully_sharded_model_space"}) {
    EXPECT_EQ(contradicted_sharding({of_tensors, {of_tensors}}, kOfTensors), "");
    EXPECT_THAT(contradicted_sharding({of_tensors, {of_tensors}}, kInBuckets),
                HasSubstr("dp_group_idx_0"));
  }
  for (const char* in_buckets : {"dp_reshardable", "dp_zero_gather_scatter"}) {
    EXPECT_EQ(contradicted_sharding({in_buckets, {in_buckets, in_buckets}}, kInBuckets), "");
    EXPECT_THAT(contradicted_sharding({in_buckets, {in_buckets}}, kOfTensors),
                HasSubstr("exp_avg.decoder.final_layernorm.weight is none of these"));
    EXPECT_EQ(contradicted_sharding({in_buckets, {in_buckets}}, {}), "") << "they were left out";
  }
}

TEST(StateSharding, IsWhatTheOptimizerSays) {
  EXPECT_THAT(contradicted_sharding({"dp_reshardable", {"dp_reshardable", "fully_reshardable"}},
                                    kInBuckets),
              HasSubstr("expected fully_reshardable"));
}

// An optimizer that is not distributed, a kind that is not known here, and older states.
TEST(StateSharding, OfOthersIsNotJudged) {
  EXPECT_EQ(contradicted_sharding({"dp_reshardable", {}}, kOfTensors), "");
  EXPECT_EQ(contradicted_sharding({"of_tomorrow", {"dp_reshardable"}}, kOfTensors), "");
  EXPECT_EQ(contradicted_sharding({"", {"dp_reshardable"}}, kOfTensors), "");
}

}  // namespace
}  // namespace shardwright
