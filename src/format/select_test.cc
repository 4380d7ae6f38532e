// SPDX-License-Identifier: Apache-2.0
#include "format/select.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace shardwright {
namespace {

using ::testing::ElementsAre;

// Names of the objects that stay beside the tensors which a pattern includes.
std::vector<std::string> objects_with(const std::string& pattern) {
  Catalog catalog;
  for (const char* name :
       {"embedding.word_embeddings.weight", "decoder.layers.0.self_attention.linear_qkv.weight",
        "decoder.layers.1.self_attention.linear_qkv.weight"}) {
    catalog.tensors.push_back({{name, DType::kF32, {2, 2}}, ChunkList(2)});
  }
  for (const char* name : {"decoder.layers.0.self_attention.linear_qkv._extra_state/shard_0_1",
                           "decoder.layers.0.self_attention.core_attention._extra_state/shard_0_1",
                           "decoder.layers.1.self_attention.linear_qkv._extra_state/shard_0_1",
                           "decoder.layers.1.self_attention.core_attention._extra_state/shard_0_1",
                           "rng_state/shard_0_1"}) {
    StoredObject object;
    object.name = name;
    catalog.objects.push_back(object);
  }
  ConvertRequest request;
  request.format = "torch_dist";
  request.include = {pattern};
  std::vector<std::string> notes;
  const auto selected = select_entries(catalog, request, notes);
  EXPECT_TRUE(selected);
  std::vector<std::string> names;
  if (!selected) return names;
  for (const StoredObject& object : selected->objects) names.push_back(object.name);
  return names;
}

TEST(Select, ExtraStatesGoWhereTheirModulesGo) {
  EXPECT_THAT(objects_with("decoder.layers.1.*.weight"),
              ElementsAre("decoder.layers.1.self_attention.linear_qkv._extra_state/shard_0_1",
                          "decoder.layers.1.self_attention.core_attention._extra_state/shard_0_1",
                          "rng_state/shard_0_1"));
  EXPECT_THAT(objects_with("embedding.*"), ElementsAre("rng_state/shard_0_1"));
  EXPECT_EQ(objects_with("*").size(), 5U);
}

}  // namespace
}  // namespace shardwright
