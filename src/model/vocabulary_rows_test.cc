// SPDX-License-Identifier: Apache-2.0
#include "model/vocabulary_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

TEST(VocabularyRows, AreThoseOfTheRuleAndOfItsStates) {
  const std::string embedding = "language_model.embedding.word_embeddings.weight";
  const std::string head = "language_model.output_layer.weight";
  const std::vector<TensorDesc> canonical = {{embedding, DType::kBF16, {16, 6}},
                                             {head, DType::kBF16, {8, 6}}};
  const SampleModel model;
  auto rows = vocabulary_rows(shipped("mllama"), model.sizes(), canonical);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->of(embedding), 15);
  EXPECT_EQ(rows->of("optimizer.state.exp_avg." + embedding), 15);
  EXPECT_EQ(rows->of(head), 7);
  rows->usual = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(rows->of(embedding), rows->usual) << "all that there are, however many";
}

TEST(VocabularyRows, AreAlikeInOtherFamilies) {
  const SampleModel model;
  const std::vector<TensorDesc> canonical = {
      {"embedding.word_embeddings.weight", DType::kBF16, {16, 6}}};
  const auto rows = vocabulary_rows(shipped("llama"), model.sizes(), canonical);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->of("embedding.word_embeddings.weight"), 7);
  EXPECT_TRUE(rows->beyond.empty());
}

}  // namespace
}  // namespace shardwright
