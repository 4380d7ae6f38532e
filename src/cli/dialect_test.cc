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

TEST(Dialect, KnowsEverySpellingOfEverySize) {
  const std::vector<Case> cases = {
      {"--tp", "--tp"},
      {"-tp", "--tp"},
      {"--tensor-model-parallel-size", "--tp"},
      {"--tensor_model_parallel_size", "--tp"},
      {"--tensor-parallel-size", "--tp"},
      {"--target-tensor-parallel-size", "--tp"},
      {"--target-tensor-model-parallel-size", "--tp"},
      {"--target_tensor_model_parallel_size", "--tp"},
      {"--target-tp", "--tp"},
      {"--pp", "--pp"},
      {"-pp", "--pp"},
      {"--pipeline-model-parallel-size", "--pp"},
      {"--target-pipeline-parallel-size", "--pp"},
      {"--target-pipeline-model-parallel-size", "--pp"},
      {"--vpp", "--vpp"},
      {"-vpp", "--vpp"},
      {"--num-virtual-stages-per-pipeline-rank", "--vpp"},
      {"--num_virtual_stages_per_pipeline_rank", "--vpp"},
      {"--virtual-pipeline-model-parallel-size", "--vpp"},
      {"--target-virtual-pipeline-model-parallel-size", "--vpp"},
      {"--ep", "--ep"},
      {"-ep", "--ep"},
      {"--expert-model-parallel-size", "--ep"},
      {"--target-expert-parallel-size", "--ep"},
      {"--etp", "--etp"},
      {"-etp", "--etp"},
      {"--expert-tensor-parallel-size", "--etp"},
      {"--target-expert-tensor-parallel-size", "--etp"},
      {"--encoder-tp", "--encoder-tp"},
      {"--encoder_tp_size", "--encoder-tp"},
      {"--encoder-tensor-parallel-size", "--encoder-tp"},
      {"--encoder-tensor-model-parallel-size", "--encoder-tp"},
      {"--encoder_tensor_model_parallel_size", "--encoder-tp"},
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
