// SPDX-License-Identifier: Apache-2.0
#include "state/component_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_directory.h"
#include "state/common_state.h"
#include "state/component_groups_fixture.h"
#include "state/state_document.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const GroupFacts kDecay;
const GroupFacts kNoDecay{.wd_mult = 0.0};
const GroupFacts kExperts{.is_expert = true};
constexpr const char* kDecayLine = "wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=0";
constexpr const char* kNoDecayLine = "wd_mult=0 step=3 lr=0.001 max_lr=0.002 expert=0";
constexpr const char* kExpertsLine = "wd_mult=1 step=3 lr=0.001 max_lr=0.002 expert=1";

std::string entry_name(const std::string& component, const std::string& content) {
  return "mimo." + component + ".optimizer.mimo." + component + "." + content + "/shard_0_1";
}

std::string empty_state() { return new_common_state({}, 3, false).value(); }

// Opaque entries in memory.
class Entries {
 public:
  void add(const std::string& name, const std::string& bytes) {
    const auto file = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back(name);
    directory_.put(name, bytes);
    catalog_.objects.push_back({name, file, {0, bytes.size()}});
  }
  Result<std::string> joined() {
    SourceFiles files(directory_, paths_, 8);
    return join_component_groups(empty_state(), catalog_, files);
  }

 private:
  MemoryDirectory directory_;
  std::vector<std::string> paths_;
  Catalog catalog_;
};

// Of two components that have these groups.
Result<std::string> joined(const std::vector<GroupFacts>& images,
                           const std::vector<GroupFacts>& language) {
  Entries entries;
  entries.add(entry_name("images", "param_groups"), groups_entry(images));
  entries.add(entry_name("language", "param_groups"), groups_entry(language));
  return entries.joined();
}

TEST(ComponentEntry, IsReadFromItsName) {
  const std::string name = entry_name("images", "1.param_groups");
  const auto entry = split_component_entry(name);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->component, "images");
  EXPECT_EQ(entry->part, 1);
  EXPECT_EQ(entry->content, "param_groups");
  EXPECT_EQ(split_component_entry(entry_name("a", "grad_scaler"))->part, 0);
  for (const char* other :
       {"mimo.a.optimizer.mimo.b.param_groups/shard_0_1", "mimo.a.optimizer.state.exp_avg.x",
        "mimo.a.optimizer.mimo.a.0.param_groups/shard_0_1", "a.optimizer.mimo.a.b/shard_0_1",
        "mimo.a.optimizer.mimo.a.param_groups/shard_1_2", "mimo.a.optimizer.mimo.ab/shard_0_1"}) {
    EXPECT_FALSE(split_component_entry(other)) << other;
  }
}

TEST(ComponentGroups, BecomeOneListWhereTheyAreAlike) {
  const auto state = joined({kDecay, kNoDecay}, {kNoDecay, kDecay});
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_THAT(lines_of_state(*state), ElementsAre(kDecayLine, kNoDecayLine));
  const StateDocument document = StateDocument::read(*state).value();
  EXPECT_EQ(document.dict().find("optimizer").find("param_state_sharding_type").text(),
            "fully_reshardable");
  EXPECT_EQ(document.dict().find("iteration").as_int(), 3);
}

TEST(ComponentGroups, OfOneComponentAloneAreKept) {
  const GroupFacts own{.max_lr = 5e-3};
  const auto state = joined({own}, {kDecay});
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_THAT(lines_of_state(*state),
              ElementsAre("wd_mult=1 step=3 lr=0.001 max_lr=0.005 expert=0", kDecayLine));
}

// An optimizer does not count steps of a group that it has no parameters for.
TEST(ComponentGroups, TakeTheStepFromThoseThatHaveOne) {
  const GroupFacts none{.wd_mult = 0.0, .step = std::nullopt};
  const auto state = joined({none, kDecay}, {kDecay, none});
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_THAT(lines_of_state(*state), ElementsAre(kNoDecayLine, kDecayLine));
}

TEST(ComponentGroups, OfExpertsAreAnOptimizerOfTheirOwn) {
  Entries entries;
  for (const char* component : {"images", "language"}) {
    entries.add(entry_name(component, "param_groups"), groups_entry({kDecay}));
    entries.add(entry_name(component, "1.param_groups"), groups_entry({kExperts}));
  }
  const auto state = entries.joined();
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_THAT(lines_of_state(*state),
              ElementsAre(std::string("0 ") + kDecayLine, std::string("1 ") + kExpertsLine));
}

TEST(ComponentGroups, ThatDisagreeAreRefused) {
  const auto by_step = joined({kDecay}, {{.wd_mult = 0.0, .step = 4}});
  ASSERT_FALSE(by_step);
  EXPECT_EQ(by_step.error().code, Code::kOptimizerMismatch);
  EXPECT_THAT(by_step.error().message, HasSubstr("entry " + entry_name("language", "param_groups") +
                                                 ": found step 4, expected 3 as in entry " +
                                                 entry_name("images", "param_groups")));
  const auto by_rate = joined({kDecay}, {{.lr = 0.5}});
  ASSERT_FALSE(by_rate);
  EXPECT_EQ(by_rate.error().code, Code::kOptimizerMismatch);
  EXPECT_THAT(by_rate.error().message, HasSubstr("found lr 0.5, expected 0.001"));
}

TEST(ComponentGroups, ThatAreNoListOfDictsAreRefused) {
  for (const std::string& bytes : {empty_extra_state().value(), empty_state()}) {
    Entries entries;
    entries.add(entry_name("images", "param_groups"), bytes);
    const auto state = entries.joined();
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, Code::kStateUnreadable);
    EXPECT_THAT(state.error().message, HasSubstr("expected a list of parameter groups"));
  }
}

TEST(ComponentGroups, AreSharedOutToEachComponent) {
  const std::string one = joined({kDecay, kNoDecay}, {kDecay, kNoDecay}).value();
  const std::vector<std::string> components = {"language", "images"};
  const auto shared = share_component_groups(one, components);
  ASSERT_TRUE(shared) << shared.error().text();
  EXPECT_THAT(lines_of_state(shared->common_state), IsEmpty());
  ASSERT_EQ(shared->entries.size(), 4U);
  for (std::size_t i = 0; i < 4; i += 2) {
    const std::string& component = components[i / 2];
    EXPECT_EQ(shared->entries[i].first, entry_name(component, "param_groups"));
    EXPECT_THAT(lines_of_entry(shared->entries[i].second),
                ElementsAre(std::string(kDecayLine) + " params=0",
                            std::string(kNoDecayLine) + " params=0"));
    EXPECT_EQ(shared->entries[i + 1].first, entry_name(component, "param_state_sharding_type"));
    EXPECT_THAT(shared->entries[i + 1].second, HasSubstr("fully_reshardable"));
  }
  EXPECT_FALSE(shared->drops_loss_scale);
  const auto again = share_component_groups(shared->common_state, components);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kOptimizerUnsupported);
}

TEST(ComponentGroups, OfExpertsAreSharedOutWithTheirNumber) {
  Entries entries;
  entries.add(entry_name("a", "param_groups"), groups_entry({kDecay}));
  entries.add(entry_name("a", "1.param_groups"), groups_entry({kExperts}));
  const std::vector<std::string> components = {"a"};
  const auto shared = share_component_groups(entries.joined().value(), components);
  ASSERT_TRUE(shared) << shared.error().text();
  ASSERT_EQ(shared->entries.size(), 4U);
  EXPECT_EQ(shared->entries[2].first, entry_name("a", "1.param_groups"));
  EXPECT_EQ(shared->entries[3].first, entry_name("a", "1.param_state_sharding_type"));
  EXPECT_THAT(lines_of_entry(shared->entries[2].second),
              ElementsAre(std::string(kExpertsLine) + " params=0"));
}

}  // namespace
}  // namespace shardwright
