// SPDX-License-Identifier: Apache-2.0
#include "report/tensor_place.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

struct PlaceCase {
  const char* name;
  TensorRole role;
  const char* component;
  std::int64_t layer;
  const char* kind;
};

TEST(TensorPlace, IsWhatTheNameSays) {
  using enum TensorRole;
  const PlaceCase cases[] = {
      {"model.layers.7.mlp.up_proj.weight", kWeight, "model", 7, "mlp.up_proj.weight"},
      {"model.embed_tokens.weight", kWeight, "model", -1, "embed_tokens.weight"},
      {"lm_head.weight", kWeight, "lm_head", -1, "weight"},
      {"model.visual.merger.mlp.0.weight", kWeight, "model.visual", -1, "merger.mlp.0.weight"},
      {"decoder.layers.mlp.linear_fc1.weight", kWeight, "decoder", -2, "mlp.linear_fc1.weight"},
      {"decoder.final_layernorm.weight", kWeight, "decoder", -1, "final_layernorm.weight"},
      {"vision_model.decoder.layers.0.a.b", kWeight, "vision_model.decoder", 0, "a.b"},
      {"optimizer.state.exp_avg.decoder.layers.3.x.weight", kFirstMoment, "decoder", 3, "x.weight"},
      {"chained_1.optimizer.state.exp_avg_sq.output_layer.weight", kSecondMoment, "output_layer",
       -1, "weight"},
      {"optimizer.state.fp32_param.decoder.layers.x.weight", kMaster, "decoder", -2, "x.weight"},
      {"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.exp_avg", kOtherState,
       "optimizer", -1,
       "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_x.bucket_idx_0.exp_avg"},
      {"w", kWeight, "w", -1, "w"},
      {"", kWeight, "", -1, ""},
      {"...", kWeight, ".", -1, "."},
  };
  for (const PlaceCase& expected : cases) {
    const TensorPlace place = place_of_tensor(expected.name);
    EXPECT_EQ(place.role, expected.role) << expected.name;
    EXPECT_EQ(place.component, expected.component) << expected.name;
    EXPECT_EQ(place.layer_number(), expected.layer) << expected.name;
    EXPECT_EQ(place.kind, expected.kind) << expected.name;
  }
}

}  // namespace
}  // namespace shardwright
