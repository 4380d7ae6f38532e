// SPDX-License-Identifier: Apache-2.0
#include "dcp/torch_obstacles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dcp/dcp_metadata_fixture.h"
#include "state/common_state.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using testing_dcp::Maker;

std::vector<std::string> obstacles_of(const std::string& path) {
  const auto checkpoint = open_checkpoint(path);
  if (!checkpoint) return {checkpoint.error().text()};
  return torch_obstacles(*checkpoint);
}

std::string metadata_of(const char* module, const char* name) {
  Maker maker;
  const pickle::Value root = maker.object(module, name);
  maker.document.set_attribute(root, "state_dict_metadata", maker.tensors);
  maker.document.set_attribute(root, "storage_data", maker.storage);
  return maker.encode(root);
}

TEST(TorchObstacles, AreShardsThatTorchDescribedWrong) {
  EXPECT_THAT(obstacles_of(golden_path("dcp/strided_rows7/ckpt")),
              AllOf(SizeIs(1), ElementsAre(HasSubstr("tensor "))));
  for (const char* const sound : {"dcp/fsdp2_uneven/ckpt", "dcp/fsdp2_tp2_uneven/ckpt"}) {
    EXPECT_THAT(obstacles_of(golden_path(sound)), IsEmpty()) << sound;
  }
}

// Megatron-Core 0.15 wrote a class of its own, which nothing but it has.
TEST(TorchObstacles, AreClassesOfMegatronWhereNoneMayBe) {
  const TemporaryFolder folder;
  constexpr const char* kModule = "megatron.core.dist_checkpointing.strategies.torch";
  folder.put("plain/.metadata", metadata_of(Maker::kModule, "Metadata"));
  EXPECT_THAT(obstacles_of(folder / "plain"), IsEmpty());
  folder.put("own/.metadata", metadata_of(kModule, "MCoreMetadata"));
  EXPECT_THAT(
      obstacles_of(folder / "own"),
      ElementsAre(AllOf(StartsWith(".metadata: is a megatron.core."), HasSubstr("MCoreMetadata"))));
  folder.put("megatron/.metadata", metadata_of(kModule, "MCoreMetadata"));
  folder.put("megatron/metadata.json",
             R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})");
  folder.put("megatron/common.pt", new_common_state({}, 1, true).value());
  EXPECT_THAT(obstacles_of(folder / "megatron"), IsEmpty());
}

}  // namespace
}  // namespace shardwright
