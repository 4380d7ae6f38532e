// SPDX-License-Identifier: Apache-2.0
#include "cli/diff_stat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace shardwright::cli {
namespace {

using ::testing::HasSubstr;

TensorDifference difference(const std::string& name, std::uint64_t elements, double delta) {
  TensorDifference difference;
  difference.left = {name, DType::kF32, {4, 4}};
  difference.right = difference.left;
  difference.differing = elements;
  difference.max_delta = delta;
  return difference;
}

TEST(DiffStat, IsALineForEachLayerInTheirOrder) {
  DiffReport report;
  report.missing_left = {"lm_head.weight"};
  report.differences = {
      difference("model.layers.10.mlp.up_proj.weight", 15, 0.5),
      difference("model.layers.2.mlp.up_proj.weight", 1, 0.25),
      difference("model.layers.2.mlp.down_proj.weight", 4, std::numeric_limits<double>::infinity()),
      difference("model.norm.weight", 0, 0.0)};
  report.differences.back().right.dtype = DType::kBF16;
  EXPECT_EQ(diff_stat_text(report),
            "where            tensors                      elements  max_delta\n"
            "lm_head          1 on one side only                  0          0\n"
            "model.layers.2   2 differ                            5        inf  ++++++++++\n"
            "model.layers.10  1 differ                           15        0.5  "
            "++++++++++++++++++++++++++++++\n"
            "model.norm       1 of another dtype or shape         0          0\n");
}

TEST(DiffStat, IsEmptyWhereNothingDiffers) { EXPECT_EQ(diff_stat_text({}), ""); }

TEST(DiffStat, StacksAndOtherTensorsAreGroupsToo) {
  DiffReport report;
  report.differences = {difference("decoder.layers.mlp.linear_fc1.weight", 3, 1.0),
                        difference("embedding.word_embeddings.weight", 1, 1.0)};
  const std::string text = diff_stat_text(report);
  EXPECT_THAT(text, HasSubstr("\ndecoder.layers "));
  EXPECT_THAT(text, HasSubstr("\nembedding "));
}

}  // namespace
}  // namespace shardwright::cli
