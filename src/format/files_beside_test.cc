// SPDX-License-Identifier: Apache-2.0
#include "format/files_beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_directory.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FilesBeside, AreToldWhereTheyHoldWhatIsLeftOut) {
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("value_head.bin", "x");
  directory->put("value_head.pt", "x");
  directory->put("value_head.safetensors", "x");
  Checkpoint checkpoint;
  checkpoint.directory = std::move(directory);
  tell_files_beside(checkpoint);
  EXPECT_THAT(checkpoint.notes, ElementsAre(HasSubstr("value_head.bin holds the head of a reward"),
                                            HasSubstr("value_head.pt holds the head of a reward")));
  checkpoint.notes.clear();
  checkpoint.catalog.files = {"value_head.bin", "value_head.pt"};
  tell_files_beside(checkpoint);
  EXPECT_THAT(checkpoint.notes, IsEmpty()) << "it is read";
}

TEST(OptimizerBeside, IsThatOfTheSameNumber) {
  TemporaryFolder folder;
  folder.put("run/pytorch_model_fsdp_0/.metadata", "x");
  folder.put("run/pytorch_model_fsdp_1/.metadata", "x");
  folder.put("run/optimizer_0/.metadata", "x");
  folder.put("run/optimizer_1/other", "x");
  Checkpoint first;
  first.location.path = folder / "run/pytorch_model_fsdp_0";
  tell_optimizer_beside(first);
  EXPECT_EQ(first.unread_optimizer_file, "optimizer_0");
  EXPECT_THAT(first.notes, ElementsAre(HasSubstr("optimizer_0 beside pytorch_model_fsdp_0")));
  Checkpoint second;
  second.location.path = folder / "run/pytorch_model_fsdp_1/";
  tell_optimizer_beside(second);
  EXPECT_EQ(second.unread_optimizer_file, "");
  EXPECT_THAT(second.notes, IsEmpty());
}

TEST(RunBeside, IsToldOnce) {
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("modelopt_state/common.pt", "x");
  directory->put("mp_rank_00/train_dataloader_dprank000.pt", "x");
  directory->put("mp_rank_01/train_dataloader_dprank000.pt", "x");
  directory->put("mp_rank_01/other.pt", "x");
  Checkpoint checkpoint;
  checkpoint.directory = std::move(directory);
  ASSERT_TRUE(tell_run_beside(checkpoint));
  EXPECT_THAT(checkpoint.notes,
              ElementsAre(HasSubstr("modelopt_state says which modules ModelOpt has changed"),
                          HasSubstr("mp_rank_00/train_dataloader_dprank000.pt: states of data")));
  checkpoint.notes.clear();
  auto plain = std::make_unique<MemoryDirectory>();
  plain->put("mp_rank_01/other.pt", "x");
  checkpoint.directory = std::move(plain);
  ASSERT_TRUE(tell_run_beside(checkpoint));
  EXPECT_THAT(checkpoint.notes, IsEmpty());
}

}  // namespace
}  // namespace shardwright
