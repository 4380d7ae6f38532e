// SPDX-License-Identifier: Apache-2.0
#include "convert/memory_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "convert/golden.h"
#include "exec/quantise_region.h"
#include "remote/block_cache.h"
#include "remote/open_path.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Plan plan_of(std::size_t tensors) {
  Plan plan;
  for (std::size_t i = 0; i < tensors; ++i) {
    const TensorDesc desc{
        "decoder.layers.0.mlp.linear_fc1.weight" + std::to_string(i), DType::kBF16, {8, 8}};
    StoredTensor stored{desc, ChunkList(2)};
    stored.chunks.push_back({Box::whole(desc.shape), 0, {0, 128}, {}});
    plan.source.tensors.push_back(stored);
    plan.target.tensors.push_back(stored);
    const TensorView view{Box::whole(desc.shape), 0, {0, 0}, {0, 1}, {1, 1}};
    plan.tensors.push_back({{view}, std::nullopt, 0.0});
  }
  return plan;
}

// The same, and each thread needs a matrix for it.
Plan quantising(Plan plan) {
  plan.tensors[7].quantising = std::make_shared<const Quantising>();
  return plan;
}

TEST(MemoryBudget, GrowsWithThePlan) {
  const ConvertRequest request;
  const auto small = budget_of(request, {}, plan_of(10)).value();
  const auto large = budget_of(request, {}, plan_of(10010)).value();
  EXPECT_GT(small.bytes(), 64 * kMiB) << "the default's buffers";
  // Twice a stored tensor, where it is and where it goes, and how one becomes the other.
  constexpr std::uint64_t kLeast = 2 * (2 * sizeof(StoredTensor) + sizeof(TensorRecipe));
  const std::uint64_t each = (large.held_bytes - small.held_bytes) / 10000;
  EXPECT_GT(each, kLeast);
  EXPECT_LT(each, 2048U);
}

TEST(MemoryBudget, CountsWhatObjectsShareOnce) {
  Plan plan;
  for (int i = 0; i < 1000; ++i) {
    plan.target.objects.push_back({"", 0, {}});
    plan.objects.push_back({false, 0, nullptr});
  }
  const ConvertRequest request;
  const auto shared = std::make_shared<const std::string>(kMiB, 'x');
  for (ObjectRecipe& object : plan.objects) object.bytes = shared;
  const std::uint64_t once = budget_of(request, {}, plan).value().held_bytes;
  plan.objects[0].bytes = std::make_shared<const std::string>(kMiB, 'x');
  const std::uint64_t twice = budget_of(request, {}, plan).value().held_bytes;
  EXPECT_GE(twice - once, 2 * kMiB) << "planned and drafted";
  EXPECT_LT(twice - once, 3 * kMiB);
  EXPECT_LT(once, 64 * kMiB);
}

TEST(MemoryBudget, IsKeptWithSmallerBuffersAndFewerThreads) {
  ConvertRequest request;
  request.threads = 16;
  const Plan plan = plan_of(10);
  const std::uint64_t held = budget_of(request, {}, plan).value().held_bytes;
  for (const std::uint64_t more : {kMiB / 8, kMiB, 10 * kMiB, 1000 * kMiB}) {
    request.max_memory_bytes = held + more;
    const auto budget = budget_of(request, {}, plan);
    ASSERT_TRUE(budget) << budget.error().text();
    EXPECT_LE(budget->bytes(), request.max_memory_bytes);
    EXPECT_LE(static_cast<std::uint64_t>(budget->threads) * (kMiB / 8), budget->buffer_bytes);
    EXPECT_EQ(budget->threads == 16, more > 4 * kMiB) << more;
  }
}

TEST(MemoryBudget, RefusesWhatWasAskedForOnly) {
  // What is read takes more than the default allows.
  Checkpoint source;
  source.common_state = std::string(300 * kMiB, '\0');
  const Plan plan = plan_of(10);
  ConvertRequest request;
  EXPECT_TRUE(budget_of(request, source, plan));
  request.max_memory_bytes = 256 * kMiB;
  const auto refused = budget_of(request, source, plan);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message, HasSubstr("--max-memory 268435456"));
  request.max_memory_bytes = 512 * kMiB;
  EXPECT_TRUE(budget_of(request, source, plan));
}

TEST(MemoryBudget, HasAMatrixForEachThreadThatQuantises) {
  ConvertRequest request;
  request.threads = 5;
  const std::uint64_t without = budget_of(request, {}, plan_of(10)).value().held_bytes;
  const std::uint64_t with = budget_of(request, {}, quantising(plan_of(10))).value().held_bytes;
  const std::uint64_t more = with - without;
  EXPECT_GE(more, 5 * kMostMatrixBytes);
  EXPECT_LT(more, 6 * kMostMatrixBytes);
}

TEST(MemoryBudget, TakesFewerThreadsWhereEachNeedsMuch) {
  ConvertRequest request;
  request.threads = 16;
  const std::uint64_t held = budget_of(request, {}, plan_of(10)).value().held_bytes;
  const Plan plan = quantising(plan_of(10));
  request.max_memory_bytes = held + 20 * kMiB;
  const auto budget = budget_of(request, {}, plan);
  ASSERT_TRUE(budget) << budget.error().text();
  EXPECT_EQ(budget->threads, 4);
  EXPECT_LE(budget->bytes(), request.max_memory_bytes);
  request.max_memory_bytes = held + 4 * kMiB;
  EXPECT_FALSE(budget_of(request, {}, plan)) << "a matrix and no buffer";
  request.max_memory_bytes.reset();
  request.threads = 500;
  EXPECT_LE(budget_of(request, {}, plan).value().bytes(), 256 * kMiB) << "the default holds too";
}

TEST(MemoryBudget, CountsWhatServersTake) {
  ConvertRequest request;
  request.threads = 8;
  const Plan plan = plan_of(10);
  const std::uint64_t local = budget_of(request, {}, plan).value().held_bytes;
  const auto held_with = [&](auto change) {
    ConvertRequest remote = request;
    change(remote);
    return budget_of(remote, {}, plan).value().held_bytes;
  };
  constexpr std::uint64_t kLeast = BlockCache::kUsualBytes;
  const std::uint64_t read = held_with([](auto& of) { of.input = "s3://bucket/run"; });
  EXPECT_GT(read - local, kLeast + 8 * kConnectionBytes);
  EXPECT_EQ(held_with([](auto& of) { of.output = "s3://bucket/out"; }), read);
  EXPECT_EQ(held_with([](auto& of) { of.adapter = "hf://owner/adapter"; }), read);
  EXPECT_EQ(held_with([](auto& of) { of.averaged = {"b", "https://host/c"}; }), read);
}

TEST(MemoryBudget, IsRefusedWithTheLeastThatIsNeeded) {
  const TemporaryFolder place;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = place / "out";
  request.max_memory_bytes = 1;
  const auto refused = prepare_conversion(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLimit);
  EXPECT_THAT(refused.error().message, HasSubstr("--max-memory 1: this conversion needs at least"));
  request.max_memory_bytes.reset();
  const auto prepared = prepare_conversion(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const std::uint64_t least = prepared->peak_memory_bytes - 64 * kMiB + kMiB / 8;
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(least)));
  request.max_memory_bytes = least;
  request.threads = 8;
  const auto kept = convert_now(request);
  EXPECT_TRUE(kept) << kept.error().text();
  request.max_memory_bytes = least - 1;
  EXPECT_FALSE(prepare_conversion(request));
}

}  // namespace
}  // namespace shardwright
