// SPDX-License-Identifier: Apache-2.0
#include "state/recorded_run.h"

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

}  // namespace
}  // namespace shardwright
