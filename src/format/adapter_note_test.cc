// SPDX-License-Identifier: Apache-2.0
#include "format/adapter_note.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

Checkpoint checkpoint_of(const std::vector<std::string>& names, std::int64_t layers) {
  Checkpoint checkpoint;
  for (const std::string& name : names) {
    checkpoint.catalog.tensors.push_back({{name, DType::kF32, {2, 4}}, ChunkList(2)});
  }
  if (layers > 0) checkpoint.arguments.emplace("num_layers", layers);
  return checkpoint;
}

// That the last layers have none only the run's arguments show.
TEST(AdapterNote, NamesTheLayersWithoutAdapters) {
  const std::string end = ".mlp.linear_fc2.adapter.linear_in.weight";
  const std::vector<std::string> names = {"decoder.layers.0" + end, "decoder.layers.2" + end};
  EXPECT_THAT(*adapter_note(checkpoint_of(names, 5)), HasSubstr("(layers 1, 3, 4 have none)"));
  EXPECT_THAT(*adapter_note(checkpoint_of(names, 0)), HasSubstr("(layers 1 have none)"));
  EXPECT_THAT(*adapter_note(checkpoint_of({names[0]}, 1)), Not(HasSubstr("have none")));
  EXPECT_EQ(adapter_note(checkpoint_of({"decoder.layers.0.mlp.linear_fc2.weight"}, 1)),
            std::nullopt);
}

}  // namespace
}  // namespace shardwright
