// SPDX-License-Identifier: Apache-2.0
#include "layout/piece_limit.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardwright {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TensorDesc big_tensor(std::string name, Dims shape) {
  return {std::move(name), DType::kBF16, shape};
}

Status check(std::vector<TensorDesc> tensors) { return check_piece_count(tensors); }

TEST(PieceLimit, AcceptsTheLargestModels) {
  std::vector<TensorDesc> tensors;
  for (int layer = 0; layer < 128; ++layer) {
    const std::string mlp = "decoder.layers." + std::to_string(layer) + ".mlp.";
    tensors.push_back(big_tensor(mlp + "experts.experts.linear_fc1.weight", {1024, 8, 8}));
    tensors.push_back(big_tensor(mlp + "experts.experts.linear_fc2.weight", {1024, 8, 8}));
    tensors.push_back(big_tensor(mlp + "router.weight", {1024, 8}));
  }
  EXPECT_TRUE(check(tensors));
  EXPECT_TRUE(check({big_tensor("embedding.word_embeddings.weight", {kHuge, 8})})) << "no pieces";
}

TEST(PieceLimit, RefusesClaimsThatWouldBeEnumerated) {
  const std::vector<std::vector<TensorDesc>> cases = {
      {big_tensor("decoder.layers.mlp.router.weight", {kHuge, 8, 0})},
      {big_tensor("decoder.layers.1099511627776.mlp.router.weight", {8, 8})},
      {big_tensor("decoder.layers.0.mlp.experts.experts.linear_fc1.weight", {kHuge, 0, 8})},
      {big_tensor("decoder.layers.mlp.experts.experts.linear_fc1.weight", {60000, kHuge, 0, 8})},
      std::vector<TensorDesc>(100, big_tensor("decoder.layers.mlp.router.weight", {60000, 8, 8})),
  };
  for (const auto& tensors : cases) {
    const Status status = check(tensors);
    ASSERT_FALSE(status) << tensors.front().name;
    EXPECT_EQ(status.error().code, Code::kLimit);
  }
}

}  // namespace
}  // namespace shardwright
