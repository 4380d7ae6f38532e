// SPDX-License-Identifier: Apache-2.0
#include "model/interleaved_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Rows = std::vector<std::int64_t>;

MappedTensor mapped(std::string name, Dims shape) {
  MappedTensor tensor;
  tensor.desc = {std::move(name), DType::kBF16, shape};
  return tensor;
}

// The gate's rows 0 to n - 1 and those of the linear part, 100 and on, in one Megatron tensor.
Correspondence gate_and_linear(const std::string& name, std::int64_t rows) {
  Correspondence made;
  made.hf.push_back(mapped("gate", {rows, 3}));
  made.hf.push_back(mapped("up", {rows, 3}));
  made.megatron.push_back(mapped(name, {2 * rows, 3}));
  for (std::uint32_t part = 0; part < 2; ++part) {
    made.blocks.push_back({part, 0, {0, 0}, {part * rows, 0}, {rows, 3}, {0, 1}, {1, 1}, false});
  }
  return made;
}

// Per Megatron row the HF row.
Rows rows_in(const Correspondence& made) {
  Rows rows(static_cast<std::size_t>(made.megatron[0].desc.shape[0]), -1);
  for (const Block& block : made.blocks) {
    EXPECT_EQ(block.shape[1], 3);
    for (std::int64_t i = 0; i < block.shape[0]; ++i) {
      auto& row = rows[static_cast<std::size_t>(block.megatron_origin[0] + i)];
      EXPECT_EQ(row, -1) << "twice";
      row = block.hf * 100 + block.hf_origin[0] + i * block.hf_step[0];
    }
  }
  return rows;
}

const std::string kFc1 = "decoder.layers.0.mlp.experts.experts.linear_fc1.weight";
const std::string kSharedFc1 = "decoder.layers.0.mlp.shared_experts.linear_fc1.weight";

TEST(InterleavedGates, LieInBlocks) {
  Correspondence made = gate_and_linear(kFc1, 4);
  ASSERT_TRUE(interleave_gates({.experts = {2, 1}, .shared_experts = {}}, made));
  EXPECT_THAT(rows_in(made), ElementsAre(0, 1, 100, 101, 2, 3, 102, 103));
}

// Each of two ranks has blocks of its own rows; the halves of what each has were put together.
TEST(InterleavedGates, OfTensorRanksLieInTheHalvesOfEach) {
  Correspondence made = gate_and_linear(kFc1, 8);
  ASSERT_TRUE(interleave_gates({.experts = {2, 2}, .shared_experts = {}}, made));
  EXPECT_THAT(rows_in(made), ElementsAre(0, 1, 100, 101, 4, 5, 104, 105,  //
                                         2, 3, 102, 103, 6, 7, 106, 107));
}

// A block that is as long as a rank's half is one that no other lies in.
TEST(InterleavedGates, OfOneBlockAreAsWithout) {
  Correspondence made = gate_and_linear(kFc1, 8);
  ASSERT_TRUE(interleave_gates({.experts = {4, 2}, .shared_experts = {}}, made));
  Rows plain(16);
  std::iota(plain.begin(), plain.begin() + 8, 0);
  std::iota(plain.begin() + 8, plain.end(), 100);
  EXPECT_EQ(rows_in(made), plain);
}

TEST(InterleavedGates, AreThoseOfTheModulesThatAreNamed) {
  Correspondence shared = gate_and_linear(kSharedFc1, 4);
  ASSERT_TRUE(interleave_gates({.experts = {2, 1}, .shared_experts = {}}, shared));
  EXPECT_THAT(rows_in(shared), ElementsAre(0, 1, 2, 3, 100, 101, 102, 103));
  ASSERT_TRUE(interleave_gates({.experts = {}, .shared_experts = {1, 1}}, shared));
  EXPECT_THAT(rows_in(shared), ElementsAre(0, 100, 1, 101, 2, 102, 3, 103));
  Correspondence fc2 = gate_and_linear("decoder.layers.0.mlp.experts.experts.linear_fc2.weight", 4);
  ASSERT_TRUE(interleave_gates({.experts = {2, 1}, .shared_experts = {2, 1}}, fc2));
  EXPECT_EQ(fc2.blocks.size(), 2);
}

// GPT-OSS: HF's rows alternate, in one tensor for all experts.
TEST(InterleavedGates, OfPackedExpertsKeepTheirSteps) {
  Correspondence made;
  made.hf.push_back(mapped("gate_up", {2, 8}));
  made.megatron.push_back(mapped("decoder.layers.0.mlp.experts.experts.linear_fc1.bias", {2, 8}));
  for (std::int64_t part = 0; part < 2; ++part) {
    made.blocks.push_back({0, 0, {0, part}, {0, part * 4}, {2, 4}, {0, 1}, {1, 2}, false});
  }
  ASSERT_TRUE(interleave_gates({.experts = {2, 1}, .shared_experts = {}}, made));
  Rows rows(8, -1);
  for (const Block& block : made.blocks) {
    EXPECT_EQ(block.shape[0], 2);
    for (std::int64_t i = 0; i < block.shape[1]; ++i) {
      rows[static_cast<std::size_t>(block.megatron_origin[1] + i)] =
          block.hf_origin[1] + i * block.hf_step[1];
    }
  }
  EXPECT_THAT(rows, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(InterleavedGates, ThatDoNotFillBlocksAreRefused) {
  Correspondence made = gate_and_linear(kFc1, 6);
  const Status status = interleave_gates({.experts = {4, 1}, .shared_experts = {}}, made);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNotDivisible);
  EXPECT_THAT(status.error().message, HasSubstr("12 rows on 1 ranks"));
}

TEST(InterleavedGates, AreWhatArgumentsSay) {
  Arguments args = {{"moe_mlp_glu_interleave_size", std::int64_t{32}},
                    {"moe_shared_expert_glu_interleave_size", std::int64_t{16}},
                    {"tensor_model_parallel_size", std::int64_t{4}}};
  InterleavedGates gates = interleaved_gates(args).value();
  EXPECT_EQ(gates.experts.rows, 32);
  EXPECT_EQ(gates.experts.ranks, 4);
  EXPECT_EQ(gates.shared_experts.rows, 0) << "only of grouped products";

  args["expert_tensor_parallel_size"] = std::int64_t{1};
  args["use_grouped_gemm_for_shared_expert"] = true;
  gates = interleaved_gates(args).value();
  EXPECT_EQ(gates.experts.ranks, 1);
  EXPECT_EQ(gates.shared_experts.rows, 16);
  EXPECT_EQ(gates.shared_experts.ranks, 4);

  args["swiglu"] = false;
  EXPECT_FALSE(interleaved_gates(args).value().are_any());
  args["quick_geglu"] = true;
  EXPECT_TRUE(interleaved_gates(args).value().are_any());
  args["quick_geglu"] = false;
  args["gated_linear_unit"] = false;
  EXPECT_FALSE(interleaved_gates(args).value().are_any());
  args["geglu"] = true;
  EXPECT_TRUE(interleaved_gates(args).value().are_any());
  args["gated_linear_unit"] = true;
  args["moe_grouped_gemm"] = false;
  EXPECT_EQ(interleaved_gates(args).value().experts.rows, 0);
  EXPECT_EQ(interleaved_gates({{"moe_mlp_glu_interleave_size", std::string("many")}}).error().code,
            Code::kConfigMissing);
  EXPECT_FALSE(interleaved_gates({}).value().are_any());
}

}  // namespace
}  // namespace shardwright
