// SPDX-License-Identifier: Apache-2.0
#include "cli/dialect.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace shardwright::cli {
namespace {

using Arguments = std::vector<std::string>;

struct Case {
  std::string given;
  std::string canonical;
};

TEST(Dialect, SpellsFlagsAsTheOptionsAre) {
  const std::vector<Case> cases = {
      {"--tp", "--tp"},
      {"-tp", "--tp"},
      {"-pp", "--pp"},
      {"-vpp", "--vpp"},
      {"-ep", "--ep"},
      {"-etp", "--etp"},
      {"-encoder_tp", "--encoder-tp"},
      {"--tensor_model_parallel_size", "--tensor-model-parallel-size"},
      {"--target_tensor_model_parallel_size", "--target-tensor-model-parallel-size"},
      {"--max_memory", "--max-memory"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(to_canonical_flags(Arguments{c.given, "4"}), (Arguments{c.canonical, "4"}));
    EXPECT_EQ(to_canonical_flags(Arguments{c.given + "=4"}), (Arguments{c.canonical + "=4"}));
    EXPECT_EQ(to_canonical_flags(Arguments{c.given + "="}), (Arguments{c.canonical + "="}));
  }
}

TEST(Dialect, LeavesTheRestAlone) {
  const Arguments same = {"convert", "tp", "in_dir/a_b", "-t", "-3", "-", "-x=a_b", "", "--to=hf"};
  EXPECT_EQ(to_canonical_flags(same), same);
  EXPECT_EQ(to_canonical_flags(Arguments{"--max_shard_size=a_b"}),
            (Arguments{"--max-shard-size=a_b"}));
  EXPECT_EQ(to_canonical_flags(Arguments{"--=x", "--target-dir", "--target-"}),
            (Arguments{"--=x", "--target-dir", "--target-"}));
  EXPECT_EQ(to_canonical_flags(Arguments{}), Arguments{});
}

TEST(Dialect, TouchesNothingAfterTwoDashes) {
  EXPECT_EQ(to_canonical_flags(Arguments{"-tp", "2", "--", "-tp", "--a_b", "--"}),
            (Arguments{"--tp", "2", "--", "-tp", "--a_b", "--"}));
}

RC_GTEST_PROP(Dialect, IsIdempotentAndKeepsTheCount, ()) {
  const auto word = rc::gen::container<std::string>(rc::gen::element('-', '_', '=', 't', 'p', 'e'));
  const auto arguments = *rc::gen::container<Arguments>(word);
  const Arguments once = to_canonical_flags(arguments);
  RC_ASSERT(once.size() == arguments.size());
  RC_ASSERT(to_canonical_flags(once) == once);
}

}  // namespace
}  // namespace shardwright::cli
