// SPDX-License-Identifier: Apache-2.0
#include "plan/archives.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shardwright {
namespace {

// The halves of a [4, 6] float tensor, side by side: each of two archives has one storage for its
// half, and behind it an empty one. Both hold all of a second tensor.
Plan archived_plan() {
  Plan plan;
  plan.source.files = {"a"};
  plan.target.files = {"0", "1"};
  plan.file_sizes = {400, 400};
  for (const std::int64_t rows : {4, 2}) {
    const TensorDesc desc{"w" + std::to_string(rows), DType::kF32, {rows, 6}};
    StoredTensor tensor{desc, ChunkList(2), Encoding::kRaw};
    tensor.chunks.push_back({Box::whole(desc.shape), 0, {0, 96}, {}});
    plan.source.tensors.push_back(tensor);
    plan.target.tensors.push_back({desc, ChunkList(2), Encoding::kRaw});
    plan.tensors.push_back(
        {{{Box::whole(desc.shape), rows == 4 ? 0U : 1U, {0, 0}, {0, 1}, {1, 1}}}, {}, 0.0});
  }
  for (const std::uint32_t file : {0U, 1U}) {
    plan.target.tensors[0].chunks.push_back(
        {Box{{0, 3 * static_cast<std::int64_t>(file)}, {4, 3}}, file, {64, 48}, {}});
    plan.target.tensors[1].chunks.push_back({Box{{0, 0}, {1, 6}}, file, {256, 24}, {}});
    plan.target.tensors[1].chunks.push_back({Box{{1, 0}, {1, 6}}, file, {280, 24}, {}});
    plan.archives.push_back({file,
                             "x",
                             {std::make_shared<const std::string>(".")},
                             std::make_shared<const std::vector<ByteRange>>(
                                 std::vector<ByteRange>{{64, 48}, {192, 0}, {256, 48}})});
  }
  return plan;
}

TEST(Archives, HaveWhatEachOfThemNeeds) { EXPECT_TRUE(check_plan(archived_plan())); }

TEST(Archives, KnowTheStorageOfAByte) {
  Plan plan = archived_plan();
  plan.target.files.push_back("other");
  const ArchiveStorages storages(plan);
  EXPECT_EQ(storages.archive_of(1), 1U);
  EXPECT_EQ(storages.archive_of(2), std::nullopt);
  EXPECT_EQ(storages.archive_of(3), std::nullopt);
  EXPECT_EQ(storages.storage_at(0, 63), std::nullopt);
  EXPECT_EQ(storages.storage_at(0, 64), 0U);
  EXPECT_EQ(storages.storage_at(0, 111), 0U);
  EXPECT_EQ(storages.storage_at(0, 112), std::nullopt);
  EXPECT_EQ(storages.storage_at(0, 192), std::nullopt);
  EXPECT_EQ(storages.storage_at(0, 303), 2U);
}

TEST(Archives, AreRefusedWhereChunksDoNotFillThem) {
  const auto message = [](const std::function<void(Plan&)>& change) {
    Plan plan = archived_plan();
    change(plan);
    const Status status = check_archives(plan);
    if (status) return std::string("accepted");
    EXPECT_EQ(status.error().code, Code::kPlanInvalid);
    return status.error().message;
  };
  const auto place = [](std::size_t tensor, std::size_t chunk, std::uint32_t file,
                        ByteRange range) {
    return [=](Plan& plan) { plan.target.tensors[tensor].chunks.set_location(chunk, file, range); };
  };
  EXPECT_EQ(message([](Plan& plan) { plan.archives[1].file = 0; }),
            "plan: an archive is in a file that is not there, in that of another, or has no "
            "storages");
  EXPECT_EQ(message([](Plan& plan) { plan.archives[1].file = 2; }),
            message([](Plan& plan) { plan.archives[1].storages = nullptr; }));
  const std::string misplaced = "tensor w2: its chunk [1:2, 0:6] does not fill storage 2";
  EXPECT_TRUE(message(place(1, 1, 0, {284, 24})).starts_with(misplaced)) << "a gap";
  EXPECT_TRUE(message(place(1, 1, 0, {280, 28})).starts_with(misplaced)) << "too long";
  EXPECT_TRUE(message(place(1, 1, 0, {280, 20})).starts_with(misplaced)) << "shorter than its box";
  EXPECT_TRUE(message(place(1, 1, 0, {256, 24})).starts_with("tensor w2: its chunk")) << "twice";
  EXPECT_EQ(message(place(1, 1, 1, {280, 24})), "plan: nothing fills storage 2 of an archive");
  EXPECT_EQ(message(place(0, 0, 0, {320, 48})),
            "tensor w2: its chunk [0:1, 0:6] does not fill storage 0 of an archive");
  EXPECT_TRUE(message([](Plan& plan) {
                plan.target.tensors[0].chunks.set_strides(0, {1, 4});
              }).starts_with("tensor w4"));
  EXPECT_TRUE(message([](Plan& plan) {
                plan.target.tensors[0].encoding = Encoding::kTorchItem;
              }).starts_with("tensor w4"));
  EXPECT_TRUE(message([](Plan& plan) {
                ChunkList& chunks = plan.target.tensors[0].chunks;
                chunks.push_back({Box{{0, 0}, {1, 1}}, 0, {320, 4}, {}});
              }).starts_with("tensor w4: a chunk lies outside"));
}

// Only an archive is read alone; elsewhere a second place is one too many.
TEST(Archives, AloneHoldReplicas) {
  Plan plan = archived_plan();
  plan.archives.clear();
  EXPECT_EQ(check_plan(plan).error().code, Code::kOverlap);
}

}  // namespace
}  // namespace shardwright
