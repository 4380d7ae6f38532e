// SPDX-License-Identifier: Apache-2.0
#include "state/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::HasSubstr;

std::string refusal(std::string_view yaml) {
  const auto read = read_run_config(yaml);
  if (read) return "read";
  EXPECT_EQ(read.error().code, Code::kYamlCorrupt) << yaml;
  return read.error().message;
}

TEST(RunConfig, SaysWhatLiesInItsPlace) {
  EXPECT_THAT(refusal(""), HasSubstr("run_config.yaml: this file is empty, not settings in YAML"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\nsize 12345\n"),
              HasSubstr("run_config.yaml: this is a Git LFS pointer"));
  EXPECT_EQ(refusal("- 1"), "run_config.yaml is no map");
  EXPECT_EQ(refusal("other: 1"), "run_config.yaml has no 'model' section");
  EXPECT_THAT(refusal("model: ["), HasSubstr("run_config.yaml: "));
  EXPECT_EQ(refusal("model: {num_layers: 2}"), "read");
}

TEST(RunConfig, HasEachKeyOnce) {
  EXPECT_THAT(refusal("model:\n  num_layers: 2\n  hidden_size: 8\n  num_layers: 4\n"),
              HasSubstr("run_config.yaml: it has the key num_layers twice"));
  EXPECT_THAT(refusal("model:\n  vision:\n    depth: 2\n    depth: 3\n"),
              HasSubstr("it has the key vision.depth twice"));
  EXPECT_THAT(refusal("model:\n  a: 2\nmodel:\n  a: 3\n"), HasSubstr("it has the key model twice"));
  EXPECT_EQ(refusal("model:\n  one: {depth: 2}\n  two: {depth: 2}\n"), "read");
}

}  // namespace
}  // namespace shardwright
