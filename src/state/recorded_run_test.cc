// SPDX-License-Identifier: Apache-2.0
#include "state/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(RecordedRun, SaysHowItsNullTokenizerCounts) {
  Arguments arguments = {{"vocab_size", std::int64_t{512}}};
  EXPECT_EQ(recorded_run(arguments).null_tokenizer, NullTokenizer::kNone);
  arguments["tokenizer_type"] = std::string("HuggingFaceTokenizer");
  arguments["null_tokenizer_pad_id"] = std::int64_t{-1};
  EXPECT_EQ(recorded_run(arguments).null_tokenizer, NullTokenizer::kNone);
  arguments["tokenizer_type"] = std::string("NullTokenizer");
  EXPECT_EQ(recorded_run(arguments).null_tokenizer, NullTokenizer::kCountsWhatItIsTold);
  arguments.erase("null_tokenizer_pad_id");
  EXPECT_EQ(recorded_run(arguments).null_tokenizer, NullTokenizer::kCountsOneMore);
}

// As it is typed, and as runs keep it.
TEST(RecordedRun, NamesItsLayersWithoutWeights) {
  const std::set<std::int64_t> two = {3, 61};
  EXPECT_EQ(noop_layers_of({{"noop_layers", std::string("3, 61")}}), two);
  EXPECT_EQ(noop_layers_of({{"noop_layers", std::vector<std::int64_t>{61, 3}}}), two);
  EXPECT_THAT(noop_layers_of({{"noop_layers", ArgValue{}}}), testing::IsEmpty());
  EXPECT_THAT(noop_layers_of({}), testing::IsEmpty());
}

TEST(RecordedRun, NamesTheOrderOfItsStages) {
  const auto order = [](const char* name, ArgValue value) {
    return recorded_run({{name, std::move(value)}}).chunk_order;
  };
  EXPECT_EQ(order("schedules_method", std::string("dualpipev")), ChunkOrder::kFolded);
  EXPECT_EQ(order("schedules_method", std::string("other")), ChunkOrder::kInterleaved);
  EXPECT_EQ(order("use_dualpipev", true), ChunkOrder::kFolded);
  EXPECT_EQ(order("use_dualpipev", false), ChunkOrder::kInterleaved);
  EXPECT_EQ(order("use_dualpipe", true), ChunkOrder::kTwoCopies);
}

}  // namespace
}  // namespace shardwright
