// SPDX-License-Identifier: Apache-2.0
#include "state/reshardable_state.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "codec/pickle_encode.h"
#include "codec/torch_layout.h"
#include "io/memory_directory.h"
#include "state/common_state.h"
#include "state/component_groups_fixture.h"
#include "state/state_document.h"

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
    const pickle::Value made = make_groups(document, groups);
    if (has_classes_) {
      for (std::size_t i = 0; i < made.size(); ++i) {
        document.set(made[i], "cpu_optimizer_cls", document.global("torch.optim.adamw", "AdamW"));
      }
    }
    document.set(inner, "param_groups", made);
    const std::array<pickle::Value, 1> shards = {inner};
    const std::string bytes =
        encode_torch_object(
            pickle::encode(document, document.list(shards), pickle::Protocol::kTwo).value())
            .value();
    add_object(prefix_of(part, rank) + "optimizer/shard_0_1", bytes);
    const std::string bucket =
        "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0.param";
    catalog_.tensors.push_back({{prefix_of(part, rank) + bucket, DType::kF32, {4}}, ChunkList(1)});
  }
  // As optimizers with parts on the CPU have them.
  void give_classes() { has_classes_ = true; }
  void add_scaler(std::int64_t part, std::int64_t rank, float scale) {
    pickle::Document empty;
    StateDocument scaler =
        StateDocument::read(
            encode_torch_object(pickle::encode(empty, empty.dict(), pickle::Protocol::kTwo).value())
                .value())
            .value();
    std::string bytes(sizeof scale, '\0');
    std::memcpy(bytes.data(), &scale, sizeof scale);
    pickle::Document& document = scaler.document();
    document.set(scaler.dict(), "scale", scaler.add_tensor(DType::kF32, {1}, bytes));
    document.set(scaler.dict(), "growth_tracker", document.integer(7));
    add_object(prefix_of(part, rank) + "grad_scaler/shard_0_1", scaler.encode().value());
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
  void add_object(const std::string& name, const std::string& bytes) {
    const std::string path = fmt::format("{}", paths_.size());
    directory_.put(path, bytes);
    catalog_.objects.push_back(
        {name, static_cast<std::uint32_t>(paths_.size()), {0, bytes.size()}});
    paths_.push_back(path);
  }

  MemoryDirectory directory_;
  std::vector<std::string> paths_;
  bool has_classes_ = false;
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

TEST(ReshardableGroups, KeepTheClassesThatTheyName) {
  RankEntries entries;
  entries.give_classes();
  entries.add(0, 0, {kOfDense});
  const auto state = entries.state();
  ASSERT_TRUE(state) << state.error().text();
  const StateDocument document = StateDocument::read(*state).value();
  const auto groups = document.dict().find("optimizer").value(0).find("optimizer");
  EXPECT_TRUE(groups.find("param_groups")[0]
                  .find("cpu_optimizer_cls")
                  .is_global("torch.optim.adamw", "AdamW"));
}

TEST(ReshardableState, HasTheLossScaleOfEachPart) {
  RankEntries entries;
  for (const std::int64_t part : {0, 1}) {
    for (const std::int64_t rank : {0, 1}) {
      entries.add(part, rank, {part == 0 ? kOfDense : kOfExperts});
      entries.add_scaler(part, rank, part == 0 ? 512.0F : 4096.0F);
    }
  }
  const auto state = entries.state();
  ASSERT_TRUE(state) << state.error().text();
  const auto file = make_memory_file("common.pt", *state);
  const TorchArchive archive = TorchArchive::open(*file).value();
  const pickle::Value optimizers = archive.root().find("optimizer");
  for (std::size_t part = 0; part < 2; ++part) {
    const pickle::Value scaler = optimizers.value(part).find("grad_scaler");
    EXPECT_EQ(scaler.find("growth_tracker").as_int(), 7);
    const LocatedTensor place = archive.locate(scaler.find("scale")).value();
    EXPECT_EQ(place.shape, (Dims{1}));
    float scale = 0;
    ASSERT_TRUE(file->read_at(place.range.offset, std::as_writable_bytes(std::span(&scale, 1))));
    EXPECT_EQ(scale, part == 0 ? 512.0F : 4096.0F);
  }
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
