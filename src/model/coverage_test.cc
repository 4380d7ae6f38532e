// SPDX-License-Identifier: Apache-2.0
#include "model/coverage.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

/// A 4x2 tensor on both sides in two blocks of two rows.
Correspondence two_blocks() {
  Correspondence result;
  MappedTensor tensor;
  tensor.desc = TensorDesc{"t", DType::kBF16, {4, 2}};
  result.hf.push_back(tensor);
  result.megatron.push_back(tensor);
  for (const std::int64_t row : {0, 2}) {
    result.blocks.push_back(Block{0, 0, {row, 0}, {row, 0}, {2, 2}, {0, 1}, {1, 1}});
  }
  return result;
}

TEST(CheckBlocks, AcceptsATilingOfBothSides) { EXPECT_TRUE(check_blocks(two_blocks())); }

TEST(CheckBlocks, AcceptsInterleavedRows) {
  Correspondence result = two_blocks();
  result.blocks[0] = Block{0, 0, {0, 0}, {0, 0}, {2, 2}, {0, 1}, {2, 1}};
  result.blocks[1] = Block{0, 0, {1, 0}, {2, 0}, {2, 2}, {0, 1}, {2, 1}};
  EXPECT_TRUE(check_blocks(result));
}

TEST(CheckBlocks, FindsWhatIsLeftOut) {
  Correspondence result = two_blocks();
  result.blocks.pop_back();
  EXPECT_EQ(check_blocks(result).error().code, Code::kHole);
  result = two_blocks();
  result.megatron.push_back(result.megatron[0]);
  EXPECT_EQ(check_blocks(result).error().code, Code::kHole);
}

TEST(CheckBlocks, FindsWhatIsTakenTwice) {
  Correspondence result = two_blocks();
  result.blocks[1].hf_origin[0] = 1;
  EXPECT_EQ(check_blocks(result).error().code, Code::kOverlap) << "HF row 1";
  result = two_blocks();
  result.blocks[1].megatron_origin[0] = 1;
  EXPECT_EQ(check_blocks(result).error().code, Code::kOverlap) << "Megatron row 1";
  result = two_blocks();
  result.blocks.push_back(result.blocks[1]);
  EXPECT_EQ(check_blocks(result).error().code, Code::kOverlap);
}

TEST(CheckBlocks, FindsWhatLeavesTheTensor) {
  Correspondence result = two_blocks();
  result.blocks[1].megatron_origin[0] = 3;
  EXPECT_EQ(check_blocks(result).error().code, Code::kOutOfBounds);
  result = two_blocks();
  result.blocks[1].hf_step[0] = 2;
  EXPECT_EQ(check_blocks(result).error().code, Code::kOutOfBounds);
}

TEST(CheckBlocks, LetsMegatronPadItsVocabulary) {
  Correspondence result = two_blocks();
  result.megatron[0].desc.shape[0] = 8;
  EXPECT_EQ(check_blocks(result).error().code, Code::kHole);
  result.megatron[0].vocabulary = true;
  result.hf[0].vocabulary = true;
  EXPECT_TRUE(check_blocks(result));
}

TEST(CheckBlocks, AsksNothingOfConstants) {
  Correspondence result = two_blocks();
  result.megatron.push_back(result.megatron[0]);
  result.megatron[1].constant = 1.0;
  EXPECT_TRUE(check_blocks(result));
}

}  // namespace
}  // namespace shardwright
