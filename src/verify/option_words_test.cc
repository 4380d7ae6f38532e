// SPDX-License-Identifier: Apache-2.0
#include "verify/option_words.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(WordsOfArguments, NameArgumentsForFlags) {
  const auto said = [](std::string_view text) { return in_words_of_arguments(text); };
  EXPECT_EQ(said("--tp: found '0', expected 1"), "tp: found '0', expected 1");
  EXPECT_EQ(said("give --hf-config DIR"), "give hf_config=DIR");
  EXPECT_EQ(said("or replace it (--overwrite)"), "or replace it (overwrite=True)");
  EXPECT_EQ(said("say --tp 2 --ep 4; or --check-replicas none"),
            "say tp=2 ep=4; or check_replicas=\"none\"");
  EXPECT_EQ(said("--as FORMAT, --for stock"), "as_=FORMAT, for_=\"stock\"");
  EXPECT_EQ(said("convert: unknown flag --overwite; did you mean --overwrite?"),
            "convert: unknown argument overwite; did you mean overwrite=True?");
  EXPECT_EQ(said("--family leaves it out"), "family leaves it out");
}

TEST(WordsOfArguments, LeaveCommandLinesAndWordsAlone) {
  const auto said = [](std::string_view text) { return in_words_of_arguments(text); };
  EXPECT_EQ(said("run 'shardwright convert a b --to hf' first"),
            "run 'shardwright convert a b --to hf' first");
  EXPECT_EQ(said("see 'shardwright verify --help'"), "see help(shardwright.verify)");
  EXPECT_EQ(said("/nope/--hf-config: cannot open"), "/nope/--hf-config: cannot open");
  EXPECT_EQ(said("a--b, -- and --- and --1"), "a--b, -- and --- and --1");
  EXPECT_EQ(said("'shardwright open"), "'shardwright open");
  EXPECT_EQ(said("--"), "--");
  EXPECT_EQ(said(""), "");
}

}  // namespace
}  // namespace shardwright
