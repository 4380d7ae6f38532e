// SPDX-License-Identifier: Apache-2.0
#include "cli/conversion_run.h"

#include <gtest/gtest.h>

namespace shardwright::cli {
namespace {

TEST(CommandLine, SaysOnlyWhatIsUnusual) {
  ConvertRequest request;
  request.input = "in";
  request.output = "o'ut dir";
  request.parallel = {
      .tensor = 2, .pipeline = 4, .virtual_pipeline = 1, .expert = 8, .expert_tensor = 2};
  EXPECT_EQ(command_line(request),
            "shardwright convert in 'o'\\''ut dir' --to torch_dist --tp 2 --pp 4 --ep 8");
  request.parallel.expert_tensor = 1;
  request.parallel.virtual_pipeline = 3;
  EXPECT_EQ(command_line(request),
            "shardwright convert in 'o'\\''ut dir' --to torch_dist --tp 2 --pp 4 --vpp 3 --ep 8 "
            "--etp 1");
  request.format = "hf";
  EXPECT_EQ(command_line(request), "shardwright convert in 'o'\\''ut dir' --to hf");
}

TEST(FreeBytes, AreThoseOfTheNearestFolder) {
  const auto here = free_bytes_at("/tmp");
  ASSERT_TRUE(here);
  EXPECT_GT(*here, 0u);
  EXPECT_TRUE(free_bytes_at("/tmp/not-there/nor-this"));
  EXPECT_TRUE(free_bytes_at("not-there"));
}

}  // namespace
}  // namespace shardwright::cli
