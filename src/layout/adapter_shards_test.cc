// SPDX-License-Identifier: Apache-2.0
#include "layout/adapter_shards.h"

#include <gtest/gtest.h>

#include <vector>

#include "layout/legacy_parts.h"
#include "layout/legacy_shards.h"

namespace shardwright {
namespace {

TensorDesc f32(std::string name, Dims shape) {
  return {std::move(name), DType::kF32, std::move(shape)};
}

struct Expected {
  std::string name;
  int axis;
  bool in_two = false;
};

TEST(AdapterShards, FollowTheLinearsOfEachTrainer) {
  const std::string qkv = "decoder.layers.self_attention.linear_qkv";
  const std::string proj = "decoder.layers.self_attention.linear_proj";
  const std::string down = "decoder.layers.self_attention.linear_kv_down_proj";
  const std::string fc1 = "decoder.layers.mlp.shared_experts.linear_fc1";
  const std::vector<Expected> cases = {
      {qkv + ".adapter.linear_in.weight", 0},
      {qkv + ".adapter.linear_out.weight", 0},
      {qkv + ".adapter.adapter_k.linear_in.weight", 0},
      {qkv + ".adapter.adapter_k.linear_out.weight", 0},
      {proj + ".adapter.linear_in.weight", 1},
      {proj + ".adapter.linear_out.weight", 0},
      {down + ".adapter.linear_in.weight", 0},
      {down + ".adapter.linear_out.weight", 0},
      {fc1 + ".adapter.linear_in.weight", 0},
      {fc1 + ".adapter.linear_out.weight", 0, true},
      {fc1 + ".adapter.adapter_up.linear_out.weight", 0, true},
      {fc1 + ".adapter.adapter_up.linear_in.weight", 0},
      {qkv + ".lora_A.default.weight", -1},
      {qkv + ".lora_B.default.weight", 0},
      {proj + ".lora_A.default.weight", 1},
      {proj + ".lora_B.weight", -1},
      {down + ".lora_A.weight", -1},
      {down + ".lora_B.weight", -1},
      {fc1 + ".lora_B.default.weight", 0},
      {"decoder.layers.mlp.router.lora_B.default.weight", -1},
      {"vision_tower.blocks.linear_fc1.adapter.linear_in.weight", -1},
  };
  for (const Expected& expected : cases) {
    const ShardRule rule = shard_rule(expected.name, 2, true);
    EXPECT_EQ(rule.axis, expected.axis) << expected.name;
    EXPECT_EQ(rule.in_two, expected.in_two) << expected.name;
  }
  EXPECT_TRUE(shard_rule(fc1 + ".adapter.adapter_up.linear_out.weight", 2, false).in_two);
  EXPECT_EQ(shard_rule(qkv + ".adapter.weight_magnitude", 1, false).axis, 0);
  EXPECT_EQ(shard_rule(proj + ".adapter.weight_magnitude", 1, false).axis, -1);
  EXPECT_FALSE(shard_rule(fc1 + ".adapter.weight_magnitude", 1, true).in_two);
}

TEST(AdapterShards, ExpertsHaveAnAxisOfTheirOwn) {
  const std::string fc1 = "decoder.layers.mlp.experts.experts.linear_fc1";
  const std::string fc2 = "decoder.layers.mlp.experts.experts.linear_fc2";
  const std::vector<Expected> cases = {
      {fc1 + ".adapter.linear_in.weight", 1},
      {fc1 + ".adapter.linear_out.weight", 1, true},
      {fc1 + ".adapter.adapter_gate.linear_out.weight", 1, true},
      {fc2 + ".adapter.linear_in.weight", 2},
      {fc2 + ".adapter.linear_out.weight", 1},
      {fc1 + ".lora_A.default.weight", -1},
      {fc1 + ".lora_B.default.weight", -1},
      {fc2 + ".lora_A.default.weight", -1},
      {fc2 + ".lora_B.default.weight", -1},
  };
  for (const Expected& expected : cases) {
    const ShardRule rule = shard_rule(expected.name, 3, true);
    EXPECT_EQ(rule.axis, expected.axis) << expected.name;
    EXPECT_EQ(rule.in_two, expected.in_two) << expected.name;
    EXPECT_EQ(rule.expert_axis, 0) << expected.name;
    EXPECT_TRUE(rule.is_expert) << expected.name;
    EXPECT_EQ(shard_rule(expected.name, 2, true).axis, -1) << "what all experts have";
    EXPECT_EQ(shard_rule(expected.name, 2, true).expert_axis, -1);
  }
}

std::vector<TensorDesc> adapters_of_mlp(bool is_gated) {
  const std::string mlp = "decoder.layers.0.mlp.";
  return {f32(mlp + "linear_fc1.adapter.linear_in.weight", {4, 8}),
          f32(mlp + "linear_fc1.adapter.linear_out.weight", {is_gated ? 24 : 12, 4}),
          f32(mlp + "linear_fc2.adapter.linear_in.weight", {4, 12}),
          f32(mlp + "linear_fc2.adapter.linear_out.weight", {8, 4})};
}

TEST(AdapterShards, AGateShowsInTheColumnsOfTheSecondLinear) {
  for (const bool is_gated : {false, true}) {
    const std::vector<TensorDesc> tensors = adapters_of_mlp(is_gated);
    const GatedFirsts gated(tensors);
    EXPECT_EQ(gated.has(tensors[1]), is_gated);
    EXPECT_FALSE(gated.has(tensors[0]));
    EXPECT_FALSE(gated.is_unknown(tensors[1]));
  }
  const TensorDesc swift = f32("decoder.layers.0.mlp.linear_fc1.lora_B.default.weight", {24, 4});
  EXPECT_FALSE(GatedFirsts(adapters_of_mlp(true)).has(swift)) << "its rows are as ranks have them";
  const std::vector<TensorDesc> base = {f32("decoder.layers.0.mlp.linear_fc2.weight", {8, 12})};
  EXPECT_TRUE(GatedFirsts(base).has(adapters_of_mlp(true)[1]));
}

// What each rank has, and where that belongs, undo each other.
TEST(AdapterShards, LegacyRanksAreReadAsTheyAreWritten) {
  const std::vector<TensorDesc> canonical = adapters_of_mlp(true);
  const ParallelConfig config{.tensor = 2};
  const StageContents stage{.layers = {0, 1}};
  const std::vector<LegacyShard> shards = legacy_shards(canonical, config, stage, {});
  ASSERT_EQ(shards.size(), canonical.size());
  for (std::int64_t t = 0; t < 2; ++t) {
    LegacyRank rank;
    rank.tensor = t;
    std::vector<TensorDesc> own;
    for (const LegacyShard& shard : shards) own.push_back(shard.desc);
    const auto parts = legacy_parts(own, {.config = config, .rank = rank}).value();
    for (std::size_t i = 0; i < shards.size(); ++i) {
      ASSERT_EQ(parts[i].size(), shards[i].runs.size()) << own[i].name;
      for (std::size_t p = 0; p < parts[i].size(); ++p) {
        EXPECT_EQ(parts[i][p].canonical.shape, canonical[i].shape) << own[i].name;
        EXPECT_EQ(parts[i][p].box, box_of(shards[i].runs[p], rank)) << own[i].name;
      }
    }
  }
  EXPECT_EQ(shards[1].runs.size(), 2U) << "gate and up";
}

TEST(AdapterShards, WhatNoRuleTellsIsRefused) {
  std::vector<TensorDesc> tensors = adapters_of_mlp(true);
  tensors.resize(2);
  const GatedFirsts gated(tensors);
  const auto code = [&](const TensorDesc& tensor, const ParallelConfig& config) {
    const Status status = check_adapter_shares(tensor, gated, config);
    return status ? std::optional<Code>() : status.error().code;
  };
  EXPECT_EQ(code(tensors[1], {.tensor = 2}), Code::kUnsupportedFormat);
  EXPECT_EQ(code(tensors[1], {}), std::nullopt);
  EXPECT_EQ(code(tensors[0], {.tensor = 2}), std::nullopt);
  const std::string mixer = "decoder.layers.0.mixer.in_proj.adapter.linear_out.weight";
  for (const std::string& name : {mixer, mixer + ".z"}) {
    EXPECT_EQ(code(f32(name, {24, 4}), {.tensor = 2}), Code::kUnsupportedFormat) << name;
    EXPECT_EQ(code(f32(name, {24, 4}), {}), std::nullopt) << name;
  }
  for (const std::string name :
       {"decoder.layers.0.mlp.experts.linear_fc1.adapter.linear_in.weight",
        "decoder.layers.0.mlp.experts.local_experts.0.linear_fc1.lora_A.weight"}) {
    EXPECT_EQ(code(f32(name, {24, 4}), {.tensor = 2}), Code::kUnsupportedFormat) << name;
    EXPECT_EQ(code(f32(name, {24, 4}), {}), Code::kUnsupportedFormat) << name;
  }
  EXPECT_EQ(code(f32("decoder.layers.0.mlp.experts.linear_fc1.adapter.linear_in.weight", {4, 8}),
                 {.expert = 2}),
            Code::kUnsupportedFormat);
  EXPECT_EQ(code(f32("decoder.layers.0.mlp.shared_experts.linear_fc1.lora_A.weight", {4, 8}),
                 {.tensor = 2}),
            std::nullopt);
}

}  // namespace
}  // namespace shardwright
