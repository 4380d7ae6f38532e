// SPDX-License-Identifier: Apache-2.0
#include "layout/recorded_words.h"

#include <gtest/gtest.h>

#include <limits>

namespace shardwright {
namespace {

RecordedRun run_of(std::int64_t told, std::int64_t divisor, NullTokenizer tokenizer) {
  RecordedRun run;
  run.vocabulary = told;
  run.vocabulary_divisor = divisor;
  run.sizes.tensor = 2;
  run.null_tokenizer = tokenizer;
  return run;
}

TEST(RecordedWords, OfANullTokenizerAreThoseThatExplainTheRows) {
  for (const NullTokenizer version :
       {NullTokenizer::kCountsOneMore, NullTokenizer::kCountsWhatItIsTold}) {
    const RecordedRun run = run_of(512, 64, version);
    EXPECT_EQ(words_of(run, 512), 512);
    EXPECT_EQ(words_of(run, 640), 513);
  }
}

TEST(RecordedWords, OfANullTokenizerAreThoseOfItsVersionWhereRowsTellNothing) {
  // 500 and 501 are padded to 512 alike, and neither to 1024.
  for (const std::int64_t rows : {512, 1024}) {
    EXPECT_EQ(words_of(run_of(500, 64, NullTokenizer::kCountsOneMore), rows), 501);
    EXPECT_EQ(words_of(run_of(500, 64, NullTokenizer::kCountsWhatItIsTold), rows), 500);
  }
  RecordedRun without_step = run_of(512, 64, NullTokenizer::kCountsOneMore);
  without_step.vocabulary_divisor.reset();
  EXPECT_EQ(words_of(without_step, 512), 513);
}

TEST(RecordedWords, OfOtherTokenizersAreWhatWasTold) {
  EXPECT_EQ(words_of(run_of(512, 64, NullTokenizer::kNone), 640), 512);
  EXPECT_EQ(words_of(RecordedRun(), 640), std::nullopt);
}

TEST(RecordedWords, ThatNoRunHasAreNone) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(words_of(run_of(kMost, 64, NullTokenizer::kCountsOneMore), 512), std::nullopt);
  EXPECT_EQ(words_of(run_of(512, kMost, NullTokenizer::kCountsOneMore), 512), 513);
  // 2^62 times the four ranks: 0 in 64 bits, by which nothing is divided.
  RecordedRun overflowing = run_of(512, kMost / 2 + 1, NullTokenizer::kNone);
  overflowing.sizes.tensor = 4;
  EXPECT_FALSE(pads_to(overflowing, 512, 512));
  EXPECT_FALSE(pads_to(run_of(512, 64, NullTokenizer::kNone), 0, 0));
  EXPECT_FALSE(pads_to(run_of(512, -64, NullTokenizer::kNone), 512, 512));
}

}  // namespace
}  // namespace shardwright
