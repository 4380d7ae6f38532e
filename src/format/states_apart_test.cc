// SPDX-License-Identifier: Apache-2.0
#include "format/states_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dcp/dcp_metadata.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;

constexpr const char* kState = "optimizer.state.exp_avg.decoder.final_layernorm.weight";

std::string metadata_of(const std::vector<std::string>& names) {
  Catalog catalog;
  catalog.files = {"__0_0.distcp"};
  for (const std::string& name : names) {
    StoredTensor tensor{{name, DType::kF32, {4}}, ChunkList(1)};
    tensor.chunks.push_back({{{0}, {4}}, 0, {0, 16}, {}});
    catalog.tensors.push_back(std::move(tensor));
  }
  return encode_dcp_metadata(catalog, {}).value();
}

std::vector<std::string> folders_of(const MemoryDirectory& directory, const std::string& format) {
  std::vector<std::string> folders;
  const Detection detection = detect(directory, format).value();
  for (const Candidate& candidate : detection.candidates) {
    folders.push_back(candidate.folder);
  }
  return folders;
}

void put_actor(const std::string& metadata, MemoryDirectory& directory) {
  directory.put("actor/dist_ckpt/.metadata", metadata);
  directory.put("actor/huggingface/config.json", "{}");
  directory.put("actor/huggingface/model.safetensors", "x");
}

TEST(StatesApart, AreLeftWhereTheWeightsLieBesideThem) {
  MemoryDirectory directory;
  put_actor(metadata_of({kState}), directory);
  EXPECT_THAT(folders_of(directory, ""), ElementsAre("actor/huggingface"));
  EXPECT_THAT(detect(directory).value().candidates.front().notes,
              ElementsAre("actor/dist_ckpt holds optimizer states alone, which are left"));
  EXPECT_THAT(folders_of(directory, "dcp"), ElementsAre("actor/dist_ckpt")) << "who asks gets them";
}

TEST(StatesApart, AreAllThatIsMeantWhereNothingElseIsThere) {
  MemoryDirectory directory;
  directory.put("actor/.metadata", metadata_of({kState}));
  directory.put("critic/.metadata", metadata_of({kState}));
  EXPECT_THAT(folders_of(directory, ""), ElementsAre("actor", "critic"));
}

TEST(StatesApart, ACheckpointWithWeightsOrUnreadableIsNotPassedOver) {
  for (const std::string& metadata :
       {metadata_of({kState, "decoder.final_layernorm.weight"}), std::string("damaged")}) {
    MemoryDirectory directory;
    put_actor(metadata, directory);
    EXPECT_THAT(folders_of(directory, ""), ElementsAre("actor/dist_ckpt", "actor/huggingface"));
  }
}

}  // namespace
}  // namespace shardwright
