// SPDX-License-Identifier: Apache-2.0
#include "convert/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

std::vector<std::string> families(const ConvertRequest& request, std::string_view config) {
  Checkpoint source;
  source.hf_config = config;
  std::vector<std::string> names;
  const auto mappings = load_mappings_of(request, source);
  for (const Mapping& mapping : mappings.value()) {
    EXPECT_FALSE(mapping.items.empty());
    names.push_back(mapping.family);
  }
  return names;
}

// To parse all families takes longer than to hash a gigabyte.
TEST(Families, OnlyThoseOfTheModelAreParsed) {
  const ConvertRequest request;
  EXPECT_THAT(families(request, R"({"architectures": ["LlamaForCausalLM"]})"),
              testing::ElementsAre("llama"));
  EXPECT_THAT(
      families(request, R"({"architectures": ["LlamaForCausalLM"], "model_type": "qwen3"})"),
      testing::ElementsAre("llama"));
  EXPECT_THAT(families(request, R"({"model_type": "qwen3"})"), testing::ElementsAre("qwen3"));
  ConvertRequest named;
  named.family = "mixtral";
  EXPECT_THAT(families(named, R"({"model_type": "qwen3"})"), testing::ElementsAre("mixtral"));
}

TEST(Families, AllOfThemWhereNoneIsNamed) {
  const ConvertRequest request;
  const std::size_t all = load_mappings(request)->size();
  EXPECT_GT(all, 40);
  EXPECT_EQ(families(request, "").size(), all);
  EXPECT_EQ(families(request, R"({"architectures": ["NobodyKnowsMe"]})").size(), all);
  EXPECT_EQ(families(request, "no JSON").size(), all) << "told when the family is looked for";
  ConvertRequest unknown;
  unknown.family = "nobody";
  EXPECT_EQ(families(unknown, "").size(), all);
}

TEST(Families, GivenFilesAreAlwaysRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "mine.json";
  ConvertRequest request;
  request.map_files = {path};
  const auto load = [&](std::string_view json) {
    folder.put("mine.json", std::string(json));
    Checkpoint source;
    source.hf_config = R"({"architectures": ["LlamaForCausalLM"]})";
    return load_mappings_of(request, source);
  };
  const auto taken = load(
      R"({"family": "mine", "extends": "llama", "architectures": ["Mine"], "model_types": ["m"]})");
  ASSERT_TRUE(taken) << taken.error().text();
  EXPECT_EQ(taken->size(), 2);
  const auto refused = load(R"({"family": "mine", "extends": "nobody"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kMappingInvalid);
}

}  // namespace
}  // namespace shardwright
