// SPDX-License-Identifier: Apache-2.0
#include "state/reshardable_state.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"
#include "state/common_state.h"
#include "state/component_groups_fixture.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What ranks of a distributed optimizer in buckets store of its groups.
class RankEntries {
 public:
  void add(std::int64_t part, std::int64_t rank, const std::vector<GroupFacts>& groups) {
    pickle::Document document;
    const pickle::Value inner = document.dict();
    document.set(inner, "param_groups", make_groups(document, groups));
    const std::array<pickle::Value, 1> shards = {inner};
    const std::string bytes =
        encode_torch_object(
            pickle::encode(document, document.list(shards), pickle::Protocol::kTwo).value())
            .value();
    const std::string path = fmt::format("{}_{}", part, rank);
    directory_.put(path, bytes);
    catalog_.objects.push_back({prefix_of(part, rank) + "optimizer/shard_0_1",
                                static_cast<std::uint32_t>(paths_.size()),
                                {0, bytes.size()}});
    paths_.push_back(path);
    const std::string bucket =
        "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0.param";
    catalog_.tensors.push_back({{prefix_of(part, rank) + bucket, DType::kF32, {4}}, ChunkList(1)});
  }
  void forget_groups_of(std::int64_t part) {
    std::erase_if(catalog_.objects, [&](const StoredObject& object) {
      return object.name.starts_with(fmt::format("chained_{}.", part));
    });
  }
  Result<std::string> state() {
    SourceFiles files(directory_, paths_, 8);
    return make_reshardable(new_common_state({}, 3, false).value(), catalog_, files, false);
  }

 private:
  static std::string prefix_of(std::int64_t part, std::int64_t rank) {
    return fmt::format("chained_{}.optimizer.distributed.dp_group_idx_{}.", part, rank);
  }
  MemoryDirectory directory_;
  std::vector<std::string> paths_;
  Catalog catalog_;
};

constexpr GroupFacts kOfDense = {};
constexpr GroupFacts kOfExperts = {.is_expert = true};
constexpr GroupFacts kNotStepped = {.step = std::nullopt, .is_expert = true};

// A pipeline stage of dense layers has the experts' group, and no parameter that it stepped.
TEST(ReshardableGroups, AreThoseOfAllRanks) {
  RankEntries entries;
  for (const std::int64_t rank : {0, 1}) entries.add(0, rank, {kOfDense});
  entries.add(1, 0, {kNotStepped});
  entries.add(1, 1, {kOfExperts, {.wd_mult = 0.0, .is_expert = true}});
  const auto state = entries.state();
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_THAT(lines_of_state(*state),
              ElementsAre("0 wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=0",
                          "1 wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=1",
                          "1 wd_mult=0 step=3 lr=0.001 max_lr=0.002 expert=1"));
}

TEST(ReshardableGroups, ThatDisagreeAreRefused) {
  RankEntries entries;
  entries.add(0, 0, {kOfDense});
  entries.add(0, 1, {{.step = 99}});
  const auto state = entries.state();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::kOptimizerMismatch);
  EXPECT_THAT(state.error().message, HasSubstr("found step 99, expected 3"));
}

TEST(ReshardableGroups, ThatAreLostAreNamedByTheirStates) {
  RankEntries entries;
  entries.add(0, 0, {kOfDense});
  entries.add(1, 0, {kOfExperts});
  entries.forget_groups_of(1);
  const auto state = entries.state();
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::kStateUnreadable);
  EXPECT_THAT(state.error().message, HasSubstr("tensor chained_1.optimizer.distributed"));
}

}  // namespace
}  // namespace shardwright
