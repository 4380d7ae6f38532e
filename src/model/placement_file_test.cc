// SPDX-License-Identifier: Apache-2.0
#include "model/placement_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/golden_files.h"

namespace shardwright {
namespace {

PlacementRules rules_of(const std::string& family) {
  const std::string name = "models/placements/" + family + ".json";
  return parse_placement_rules(read_file(source_path(name)), name).value();
}

MeshPlacements dense(int axis) {
  MeshPlacements placements(4);
  if (axis >= 0) placements[3] = MeshPlacement::shard(axis);
  return placements;
}

MeshPlacements experts(int expert_tensor_axis) {
  MeshPlacements placements(4);
  placements[2] = MeshPlacement::shard(0);
  placements[3] = MeshPlacement::shard(expert_tensor_axis);
  return placements;
}

struct Case {
  const char* family;
  const char* name;
  MeshPlacements placements;
};

class PlacementFiles : public testing::TestWithParam<Case> {};

TEST_P(PlacementFiles, PlaceParameters) {
  const PlacementRules rules = rules_of(GetParam().family);
  EXPECT_EQ(rules.family, GetParam().family);
  EXPECT_EQ(to_string(rules.placements_of(GetParam().name)), to_string(GetParam().placements));
}

// A name that a generic rule would catch goes with the specific one in front of it.
INSTANTIATE_TEST_SUITE_P(
    Families, PlacementFiles,
    testing::Values(
        Case{"deepseek_v4", "layers.3.mlp.experts.fc1.weight0", experts(0)},
        Case{"deepseek_v4", "layers.3.mlp.experts.fc2.weight7", experts(1)},
        Case{"deepseek_v4", "layers.3.mlp.shared_experts.gate_up.weight", dense(0)},
        Case{"deepseek_v4", "layers.3.mlp.shared_experts.down.weight", dense(1)},
        Case{"deepseek_v4", "hc_head.hc_fn", dense(-1)},
        Case{"deepseek_v4", "mtp.0.hc_head.hc_scale", dense(-1)},
        Case{"deepseek_v4", "head.weight", dense(0)},
        Case{"deepseek_v4", "layers.3.attn_hc.fn", dense(-1)},
        Case{"deepseek_v4", "mtp.0.eh_proj.linear.weight", dense(0)},
        Case{"glm5", "layers.1.mlp.down.linear.weight", dense(1)},
        Case{"glm5", "layers.1.attn.wq.weight", dense(-1)},
        Case{"kimi_k2", "layers.1.self_attention.linear_q_up_proj.linear.weight", dense(0)},
        Case{"kimi_k2", "layers.1.self_attention.linear_kv_down_proj.weight", dense(-1)},
        Case{"kimi_k2", "layers.1.mlp.down.linear.weight", dense(1)},
        Case{"kimi_k2", "layers.1.self_attention.linear_proj.linear.weight", dense(1)},
        Case{"qwen3_moe", "layers.1.attn.qkv.linear.weight", dense(0)},
        Case{"qwen3_moe", "layers.1.attn.qkv.linear.layer_norm_weight", dense(-1)},
        Case{"qwen3_moe", "layers.1.attn.proj.linear.weight", dense(1)},
        Case{"qwen3_moe", "layers.1.moe.experts.fc1.weight0", experts(0)},
        Case{"qwen3_5", "layers.1.linear_attn.in_proj.weight", dense(0)},
        Case{"qwen3_5", "layers.1.linear_attn.out_proj.weight", dense(1)},
        Case{"qwen3_5", "layers.1.linear_attn.in_proj.layer_norm_weight", dense(-1)},
        Case{"qwen3_5", "layers.1.linear_attn.conv1d.weight", dense(0)},
        Case{"qwen3_5", "layers.1.moe.router.gate.weight", dense(-1)}));

TEST(PlacementFile, SaysWhatIsWrongAndWhere) {
  const auto message = [](std::string_view json) {
    const auto rules = parse_placement_rules(json, "x.json");
    return rules ? std::string("accepted") : rules.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(message("{"), HasSubstr("x.json"));
  EXPECT_THAT(message(R"({"family": "f", "rules": []})"), HasSubstr("experts"));
  EXPECT_THAT(message(R"({"family": "f", "experts": {}, "rules": [{"shard": {"tp": 9}}]})"),
              HasSubstr("x.json#/rules/0/shard/tp"));
  EXPECT_THAT(message(R"({"family": "f", "experts": {}, "rules": [{"shard": {"ep": 0}}]})"),
              HasSubstr("ep"));
  EXPECT_THAT(message(R"({"family": "f", "experts": {}, "rules": [{"contain": "x"}]})"),
              HasSubstr("contain"));
}

}  // namespace
}  // namespace shardwright
