// SPDX-License-Identifier: Apache-2.0
#include "io/partial_outputs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "io/publish.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// No process has this number: it is above the kernel's largest.
const std::string kDead = "4194305";

std::vector<PartialOutput> listed(const TemporaryFolder& place) {
  return list_partial_outputs(place.path().string()).value();
}

TEST(PartialOutputs, AreListedAndRemovedWhereNobodyIsAtThem) {
  const TemporaryFolder place;
  place.put(".out.partial-" + kDead + "-0/deep/file", "12345");
  place.put("sums.json.partial-" + kDead + "-7", "123");
  const auto found = listed(place);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].target, "out");
  EXPECT_EQ(found[0].bytes, 5U);
  EXPECT_EQ(found[1].target, "sums.json");
  EXPECT_EQ(found[1].bytes, 3U);
  for (const PartialOutput& output : found) {
    EXPECT_EQ(output.state, PartialState::kAbandoned);
    EXPECT_EQ(remove_partial_output(output).value(), PartialState::kAbandoned);
    EXPECT_FALSE(fs::exists(output.path));
    EXPECT_EQ(remove_partial_output(output).value(), PartialState::kAbandoned) << "it is gone";
  }
  EXPECT_EQ(place.tree(), "");
}

TEST(PartialOutputs, OfOthersAreNotOurs) {
  const TemporaryFolder place;
  for (const std::string& name : std::vector<std::string>{
           ".out.partial-x-0", ".out.partial-" + kDead, ".out.partial-" + kDead + "-0.txt",
           ".partial-" + kDead + "-0", ".out.partial--5-0", ".out.partial-" + kDead + "-0-older",
           "folder.partial-" + kDead + "-0"}) {
    place.put(name + "/file", "x");
  }
  place.put(".file.partial-" + kDead + "-0", "a hidden file is no folder of ours");
  fs::create_symlink("/etc", place / (".link.partial-" + kDead + "-0"));
  const std::string before = place.tree();
  EXPECT_TRUE(listed(place).empty());
  EXPECT_EQ(place.tree(), before);
}

TEST(PartialOutputs, StayWhileSomebodyHoldsThem) {
  const TemporaryFolder place;
  const std::string live = ".a.partial-" + std::to_string(::getpid()) + "-0";
  // Process 1 of another container: the number says nothing, the lock does.
  place.put(".c.partial-1-0/x", "x");
  const std::string locked = ".b.partial-" + kDead + "-0";
  place.put(live + "/x", "x");
  place.put(locked + "/x", "x");
  const UniqueFd lock(::open((place / locked).c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const UniqueFd own(::open((place / live).c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(own.get(), LOCK_EX), 0);
  auto found = listed(place);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found.back().state, PartialState::kAbandoned);
  found.pop_back();
  for (PartialOutput output : found) {
    EXPECT_EQ(output.state, PartialState::kHeld) << output.path;
    output.state = PartialState::kAbandoned;  // as it was listed a moment ago
    EXPECT_EQ(remove_partial_output(output).value(), PartialState::kHeld);
  }
  EXPECT_TRUE(fs::exists(place / (live + "/x")));
  EXPECT_TRUE(fs::exists(place / (locked + "/x")));
}

// Moved aside by a run that was killed before it put the new one in its place.
TEST(PartialOutputs, TheOnlyCopyStays) {
  const TemporaryFolder place;
  place.put(".out.partial-" + kDead + "-0-old/weights", "x");
  ASSERT_EQ(listed(place).size(), 1U);
  EXPECT_EQ(listed(place)[0].state, PartialState::kOnlyCopy);
  EXPECT_EQ(remove_partial_output(listed(place)[0]).value(), PartialState::kOnlyCopy);
  place.put("out/weights", "y");
  const std::vector<PartialOutput> found = listed(place);
  EXPECT_EQ(found[0].state, PartialState::kAbandoned);
  // What had taken its place is gone again since it was listed.
  fs::remove_all(place / "out");
  EXPECT_EQ(remove_partial_output(found[0]).value(), PartialState::kOnlyCopy);
  EXPECT_TRUE(fs::exists(found[0].path));
}

TEST(PartialOutputs, OfPartsHaveADigestForAProcess) {
  const TemporaryFolder place;
  const std::string id = "0123456789abcdef";
  const std::string folder = parts_folder(fs::canonical(place.path()) / "out", id);
  EXPECT_EQ(fs::path(folder).filename(), ".out.parts-" + id);
  place.put(".out.parts-" + id + "/x", "123");
  place.put(".run.parts-" + id + "-old/x", "12");
  for (const std::string& other : std::vector<std::string>{
           ".out.parts-" + id + "0", ".out.parts-0123456789abcdeF", ".out.parts-", ".parts-" + id,
           "out.parts-" + id, ".out.parts-" + id + "-older"}) {
    place.put(other + "/x", "a user's own");
  }
  const auto found = listed(place);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, folder);
  EXPECT_EQ(found[0].target, "out");
  EXPECT_EQ(found[0].process, 0);
  EXPECT_EQ(found[0].bytes, 3U);
  EXPECT_EQ(found[0].state, PartialState::kAbandoned);
  EXPECT_EQ(found[1].state, PartialState::kOnlyCopy);
  const UniqueFd one(::open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  const UniqueFd another(::open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(lock_patiently(one, FolderLock::kWithOthers));
  EXPECT_TRUE(lock_patiently(another, FolderLock::kWithOthers));
  EXPECT_EQ(listed(place)[0].state, PartialState::kHeld);
  EXPECT_EQ(remove_partial_output(found[0]).value(), PartialState::kHeld);
  const BeginningTurn turn(place.path());
  EXPECT_EQ(rival_of(fs::canonical(place.path()) / "out", turn).value()->path, folder);
  EXPECT_FALSE(rival_of(fs::canonical(place.path()) / "out", turn, folder).value());
}

// Stopped in its turn: its folder is made and not locked yet.
TEST(PartialOutputs, OfARunThatIsBeginningStay) {
  const TemporaryFolder place;
  const std::string target = fs::canonical(place.path()) / "out";
  const std::string folder = ".out.partial-" + std::to_string(::getpid()) + "-0";
  fs::create_directory(place / folder);
  const auto found = listed(place);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].state, PartialState::kAbandoned) << "as far as its lock says";
  {
    const BeginningTurn ours(place.path());
    EXPECT_TRUE(ours.is_ours());
    EXPECT_FALSE(rival_of(target, ours).value());
  }
  {
    const UniqueFd turn(::open(place.path().c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::flock(turn.get(), LOCK_EX), 0);
    EXPECT_EQ(remove_partial_output(found[0]).value(), PartialState::kHeld);
    EXPECT_TRUE(fs::exists(found[0].path));
    const BeginningTurn ours(place.path());
    EXPECT_FALSE(ours.is_ours());
    EXPECT_EQ(rival_of(target, ours).value()->path, found[0].path);
    fs::rename(place / folder, place / (".out.partial-" + kDead + "-0"));
    EXPECT_FALSE(rival_of(target, ours).value()) << "a dead run begins nothing";
    fs::rename(place / (".out.partial-" + kDead + "-0"), place / folder);
  }
  EXPECT_EQ(remove_partial_output(found[0]).value(), PartialState::kAbandoned);
}

TEST(PartialOutputs, NeedAFolder) {
  const TemporaryFolder place;
  EXPECT_EQ(list_partial_outputs(place / "none").error().code, Code::kNotFound);
}

Result<std::unique_ptr<Publication>> begin_at(const std::string& target, bool may_replace = false) {
  PublishOptions options;
  options.target = target;
  if (may_replace) {
    options.may_replace = [](const std::string&) -> Result<Replace> { return Replace::kWhole; };
  }
  return Publication::begin(std::move(options));
}

TEST(TwoWriters, OfOneTargetOneIsTold) {
  const TemporaryFolder place;
  place.put(".out.partial-" + kDead + "-0/x", "what a killed run left is no rival");
  auto first = begin_at(place / "out");
  ASSERT_TRUE(first);
  const auto second = begin_at(place / "out");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kTargetExists);
  EXPECT_THAT(second.error().message, HasSubstr((*first)->partial_path()));
  EXPECT_TRUE(begin_at(place / "another"));
  ASSERT_TRUE((*first)->commit());
  first->reset();
  EXPECT_TRUE(begin_at(place / "out", true));
}

PublishOptions part_of(const std::string& target, const std::string& id, bool is_part) {
  PublishOptions options;
  options.target = target;
  options.parts_id = id;
  options.is_part = is_part;
  options.keeps_unfinished = true;
  return options;
}

TEST(TwoWriters, OfPartsShareAFolderUntilOnePublishes) {
  const TemporaryFolder place;
  const std::string out = place / "deep/out";
  const std::string id(16, 'a');
  EXPECT_EQ(Publication::begin(part_of(out, id, false)).error().code, Code::kPartsMissing);
  EXPECT_EQ(place.tree(), "");
  auto first = Publication::begin(part_of(out, id, true)).value();
  auto second = Publication::begin(part_of(out, id, true)).value();
  EXPECT_TRUE(first->is_new());
  EXPECT_FALSE(second->is_new());
  EXPECT_EQ(first->partial_path(), second->partial_path());
  // Both make the same file, and nothing of it is lost.
  const auto one = first->directory().reopen("sub/data", 4).value();
  ASSERT_TRUE(one->write_at(0, std::as_bytes(std::span("ab", 2))));
  const auto two = second->directory().reopen("sub/data", 4).value();
  ASSERT_TRUE(two->write_at(2, std::as_bytes(std::span("cd", 2))));
  ASSERT_TRUE(first->sync_folders());

  const auto early = Publication::begin(part_of(out, id, false));
  EXPECT_EQ(early.error().code, Code::kTargetExists);
  EXPECT_THAT(early.error().message, HasSubstr("a part of it is being written now"));
  const auto other = Publication::begin(part_of(out, std::string(16, 'b'), true));
  EXPECT_EQ(other.error().code, Code::kTargetExists);
  EXPECT_THAT(other.error().message, HasSubstr("a part of another saved plan"));
  first.reset();
  second.reset();
  EXPECT_TRUE(fs::exists(place / ("deep/.out.parts-" + id)));

  auto publisher = Publication::begin(part_of(out, id, false)).value();
  const auto late = Publication::begin(part_of(out, id, true));
  EXPECT_EQ(late.error().code, Code::kTargetExists);
  EXPECT_THAT(late.error().message, HasSubstr("being published"));
  ASSERT_TRUE(publisher->commit());
  EXPECT_EQ(place.get("deep/out/sub/data"), "abcd");
  EXPECT_EQ(place.tree(), "deep deep/out deep/out/sub deep/out/sub/data");
}

}  // namespace
}  // namespace shardwright
