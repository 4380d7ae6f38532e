// SPDX-License-Identifier: Apache-2.0
#include "layout/module_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kMixer = "decoder.layers.0.mixer.";
const std::string kDelta = "decoder.layers.0.self_attention.";

// Of a mixer with 4 heads of 2, and 2 groups of a state of 3; of a delta net with as many heads.
std::vector<TensorDesc> mixer_modules() {
  return {{kMixer + "A_log", DType::kF32, {4}},
          {kMixer + "out_proj.weight", DType::kF32, {5, 8}},
          {kMixer + "in_proj.weight", DType::kF32, {8 + 8 + 6 + 6 + 4, 5}},
          {kMixer + "conv1d_bias", DType::kF32, {8 + 6 + 6}},
          {kDelta + "A_log", DType::kF32, {4}},
          {kDelta + "out_proj.weight", DType::kF32, {5, 8}},
          {kDelta + "in_proj.weight", DType::kF32, {6 + 6 + 8 + 8 + 4 + 4, 5}},
          {kDelta + "conv1d.weight.query", DType::kF32, {6, 1, 4}}};
}

std::string text_of(const Result<std::vector<RowRun>>& runs) {
  if (!runs) return runs.error().message;
  std::string text;
  for (const RowRun& run : *runs) {
    text += run.tensor.substr(run.tensor.rfind('.')) + " " + std::to_string(run.from) + ">" +
            std::to_string(run.to) + "+" + std::to_string(run.rows) + " ";
  }
  return text;
}

TEST(ModuleTensors, HaveTheirPartsRankByRank) {
  const std::vector<TensorDesc> modules = mixer_modules();
  const ModuleTensors tensors(modules);
  EXPECT_EQ(text_of(tensors.runs_of(modules[2], 1)),
            ".z 0>0+8 .x 8>0+8 .B 16>0+6 .C 22>0+6 .dt 28>0+4 ");
  EXPECT_EQ(text_of(tensors.runs_of(modules[2], 2)),
            ".z 0>0+4 .x 4>0+4 .B 8>0+3 .C 11>0+3 .dt 14>0+2 "
            ".z 16>4+4 .x 20>4+4 .B 24>3+3 .C 27>3+3 .dt 30>2+2 ");
  EXPECT_EQ(tensors.runs_of(modules[3], 1)->front().tensor, kMixer + "conv1d.bias.x");
  EXPECT_EQ(text_of(tensors.runs_of(modules[6], 1)),
            ".query 0>0+6 .key 6>0+6 .value 12>0+8 .z 20>0+8 .beta 28>0+4 .alpha 32>0+4 ");
  EXPECT_EQ(text_of(tensors.runs_of(modules[7], 2)), ".query 0>0+6 ") << "a part already";
  EXPECT_EQ(text_of(tensors.runs_of(modules[0], std::nullopt)), ".A_log 0>0+4 ");
}

TEST(ModuleTensors, RefuseRowsThatNothingTellsApart) {
  const std::vector<TensorDesc> modules = mixer_modules();
  const ModuleTensors tensors(modules);
  const auto unknown = tensors.runs_of(modules[2], std::nullopt);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUnsupportedFormat);
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-2}, std::int64_t{1} << 40}) {
    const auto none = tensors.runs_of(modules[2], size);
    ASSERT_FALSE(none) << size;
    EXPECT_EQ(none.error().code, Code::kUnsupportedFormat) << size;
  }
  const auto odd = tensors.runs_of(modules[2], 4);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::kShapeMismatch);
  EXPECT_THAT(odd.error().message, HasSubstr("on 4 tensor-parallel ranks"));
  const auto grouped =
      tensors.runs_of({"decoder.layers.0.mlp.experts.weight1", DType::kF32, {4, 4}}, 1);
  ASSERT_FALSE(grouped);
  EXPECT_EQ(grouped.error().code, Code::kUnsupportedFormat);
}

TEST(ModuleTensors, TakeFusedLatentsApart) {
  const std::string attention = "decoder.layers.0.self_attention.";
  const std::vector<TensorDesc> modules = {
      {attention + "linear_qkv_down_proj.weight", DType::kF32, {6 + 4, 5}},
      {attention + "linear_q_up_proj.weight", DType::kF32, {8, 6}},
      {attention + "linear_qkv_down_proj.layer_norm_weight", DType::kF32, {5}}};
  const ModuleTensors tensors(modules);
  const auto runs = tensors.runs_of(modules[0], 2);
  ASSERT_TRUE(runs) << runs.error().text();
  std::vector<std::string> names;
  std::vector<std::int64_t> rows;
  for (const RowRun& run : *runs) {
    names.push_back(run.tensor);
    rows.push_back(run.rows);
  }
  const std::string query = attention + "linear_q_down_proj.weight";
  const std::string key_value = attention + "linear_kv_down_proj.weight";
  EXPECT_THAT(names, ElementsAre(query, key_value, query, key_value));
  EXPECT_THAT(rows, ElementsAre(3, 2, 3, 2));
  EXPECT_EQ(tensors.canonical_name(modules[2].name), "decoder.layers.0.input_layernorm.weight");
}

TEST(ModuleTensors, HaveTheNamesOfTorchDist) {
  const std::vector<TensorDesc> local = {
      {"decoder.layers.0.input_layernorm.weight", DType::kF32, {4}},
      {"decoder.layers.0.self_attention.linear_qkv.weight", DType::kF32, {4, 4}}};
  EXPECT_EQ(ModuleTensors(local).canonical_name(local[0].name),
            "decoder.layers.0.self_attention.linear_qkv.layer_norm_weight");
  const std::vector<TensorDesc> engine = {
      {"decoder.layers.0.mlp.linear_fc1.weight", DType::kF32, {4}}};
  const ModuleTensors tensors(engine);
  EXPECT_EQ(tensors.canonical_name("decoder.layers.0.input_layernorm.weight"),
            "decoder.layers.0.input_layernorm.weight");
  EXPECT_EQ(tensors.canonical_name("mtp.layers.0.mtp_model_layer.mlp.linear_fc2.weight"),
            "mtp.layers.0.transformer_layer.mlp.linear_fc2.weight");
}

}  // namespace
}  // namespace shardwright
