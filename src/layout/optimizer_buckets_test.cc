// SPDX-License-Identifier: Apache-2.0
#include "layout/optimizer_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Parameters = std::vector<BufferedParameter>;
using Sizes = std::vector<std::int64_t>;

// `b` is shorter than what the next one is aligned to.
Parameters sample() { return {{"a", 128}, {"b", 70}, {"c", 64}, {"d", 200}}; }

std::vector<std::string> places(const Parameters& parameters, const Sizes& sizes) {
  const auto slots = place_in_buckets(parameters, sizes);
  if (!slots) return {slots.error().message};
  std::vector<std::string> text;
  for (std::size_t i = 0; i < slots->size(); ++i) {
    text.push_back(parameters[i].name + "=" + std::to_string((*slots)[i].bucket) + "@" +
                   std::to_string((*slots)[i].first));
  }
  return text;
}

// d: 0 to 200, c: from 256, b: from 320 to 390, a: from 448.
TEST(OptimizerBuckets, FillFromTheLastParameterOn) {
  EXPECT_THAT(bucket_sizes(sample(), std::nullopt), ElementsAre(576));
  EXPECT_THAT(places(sample(), {576}), ElementsAre("a=0@448", "b=0@320", "c=0@256", "d=0@0"));
}

TEST(OptimizerBuckets, CloseWhereTheirSizeIsReached) {
  EXPECT_THAT(bucket_sizes(sample(), 201), ElementsAre(320, 256));
  EXPECT_THAT(bucket_sizes(sample(), 200), ElementsAre(200, 320));
  EXPECT_THAT(bucket_sizes(sample(), 321), ElementsAre(390, 128));
  EXPECT_THAT(places(sample(), {390, 128}), ElementsAre("a=1@0", "b=0@320", "c=0@256", "d=0@0"));
  EXPECT_THAT(places(sample(), {200, 320}), ElementsAre("a=1@192", "b=1@64", "c=1@0", "d=0@0"));
}

// What comes before an embedding that two stages share is counted up to its aligned start.
TEST(OptimizerBuckets, OfSharedEmbeddingsAreTheirOwn) {
  Parameters parameters = sample();
  parameters[0].is_shared = true;
  EXPECT_THAT(bucket_sizes(parameters, std::nullopt), ElementsAre(448, 128));
  EXPECT_THAT(places(parameters, {448, 128}), ElementsAre("a=1@0", "b=0@320", "c=0@256", "d=0@0"));
  parameters[0].is_shared = false;
  parameters[3].is_shared = true;
  EXPECT_THAT(bucket_sizes(parameters, std::nullopt), ElementsAre(200, 320));
}

TEST(OptimizerBuckets, OfOtherSizesAreRefused) {
  EXPECT_THAT(places(sample(), {575}),
              ElementsAre(HasSubstr("tensor a: found 127 elements left in the optimizer's buckets, "
                                    "expected room for its 128")));
  EXPECT_THAT(places(sample(), {577}), ElementsAre(HasSubstr("found 577 elements in bucket 0")));
  EXPECT_THAT(places(sample(), {576, 64}), ElementsAre(HasSubstr("bucket 0 of 2")));
  EXPECT_THAT(places(sample(), {200, 250}), ElementsAre(HasSubstr("tensor a")));
  EXPECT_THAT(places(sample(), {}), ElementsAre(HasSubstr("tensor d: found 0 elements")));
}

TEST(OptimizerBuffers, HoldOneStageAndDtypeEach) {
  const Parameters parameters = {{"a", 1, false, 0, DType::kBF16},
                                 {"b", 1, false, 0, DType::kF32},
                                 {"c", 1, false, 0, DType::kBF16},
                                 {"d", 1, false, 1, DType::kF32}};
  EXPECT_THAT(buffers_of(parameters),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3)));
}

// One stage has both, or there are two that must agree.
TEST(OptimizerBuckets, AreApartForWhatTwoStagesHave) {
  constexpr std::string_view kEmbedding = "embedding.word_embeddings.weight";
  constexpr std::string_view kOutput = "output_layer.weight";
  EXPECT_TRUE(is_shared_parameter(kEmbedding, 2, true, false));
  EXPECT_TRUE(is_shared_parameter(kEmbedding, 2, false, true)) << "of every stage of an MTP run";
  EXPECT_TRUE(is_shared_parameter(kOutput, 2, true, false));
  EXPECT_FALSE(is_shared_parameter(kOutput, 2, false, true));
  EXPECT_FALSE(is_shared_parameter(kEmbedding, 1, true, true));
  EXPECT_FALSE(is_shared_parameter(kEmbedding, 2, false, false));
  EXPECT_FALSE(is_shared_parameter("decoder.final_layernorm.weight", 2, true, true));
}

TEST(OptimizerBuckets, AreNoLongerThanMemory) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(element_sum(sample()).value(), 128 + 70 + 64 + 200);
  const auto refused = element_sum(Parameters{{"a", 64}, {"b", kHuge}, {"c", kHuge}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOptimizerUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("tensor b: found"));
}

}  // namespace
}  // namespace shardwright
