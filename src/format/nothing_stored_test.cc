// SPDX-License-Identifier: Apache-2.0
#include "format/nothing_stored.h"

#include <gmock/gmock.h>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// As verl saves them with mbridge: the weights are a Hugging Face model beside them.
TEST(NothingStored, StatesAloneAreTold) {
  TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.location.path = folder / "dist_ckpt";
  EXPECT_EQ(note_on_states_alone(checkpoint), "") << "there is nothing at all";
  checkpoint.catalog.tensors.push_back(
      {{"optimizer.state.exp_avg.decoder.final_layernorm.weight", DType::kF32, {4}}, ChunkList(1)});
  EXPECT_THAT(note_on_states_alone(checkpoint), EndsWith("the weights are elsewhere"));
  folder.put("huggingface/config.json", "{}");
  EXPECT_EQ(model_beside_states(checkpoint), std::nullopt);
  EXPECT_THAT(note_on_states_alone(checkpoint),
              EndsWith((folder / "huggingface") + " describes the model and has none"));
  folder.put("adapter_checkpoint/mp_rank_00_adapter.pt", "x");
  EXPECT_THAT(note_on_states_alone(checkpoint),
              HasSubstr("has none; " + (folder / "adapter_checkpoint") + " has what was trained"));
  folder.put("huggingface/model.safetensors", "x");
  EXPECT_EQ(model_beside_states(checkpoint), folder / "huggingface");
  EXPECT_THAT(note_on_states_alone(checkpoint), EndsWith("; give " + (folder / "huggingface")));
  checkpoint.catalog.tensors.push_back(
      {{"decoder.final_layernorm.weight", DType::kBF16, {4}}, ChunkList(1)});
  EXPECT_EQ(note_on_states_alone(checkpoint), "");
  EXPECT_EQ(model_beside_states(checkpoint), std::nullopt);
}

}  // namespace
}  // namespace shardwright
