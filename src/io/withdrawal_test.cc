// SPDX-License-Identifier: Apache-2.0
#include "io/withdrawal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "base/fail.h"
#include "io/partial_outputs.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

// A file system may lack a call, and another process may do something in front of one.
class WithdrawalCalls final : public PublishCalls {
 public:
  int rename(const std::string& from, const std::string& to) override {
    if (before_rename) std::exchange(before_rename, {})();
    return denied ? EACCES : PublishCalls::rename(from, to);
  }

  std::function<void()> before_rename;
  bool denied = false;
};

// Another process writes `.out.partial-1-0`, which is to be `out`.
class WithdrawalTest : public ::testing::Test {
 protected:
  WithdrawalTest() { place_.put(".out.partial-1-0/new", "new"); }

  Withdrawal of_other() { return {partial_, target_, calls_}; }

  TemporaryFolder place_;
  const std::string partial_ = place_ / ".out.partial-1-0";
  const std::string target_ = place_ / "out";
  const std::string ours_ = place_ / (".out.partial-" + std::to_string(::getpid()) + "-0");
  std::shared_ptr<WithdrawalCalls> calls_ = std::make_shared<WithdrawalCalls>();
};

TEST_F(WithdrawalTest, GivesTheHiddenFolderAnotherName) {
  Withdrawal output = of_other();
  EXPECT_EQ(output.withdraw(), ours_);
  EXPECT_TRUE(fs::exists(ours_ + "/new"));
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(WithdrawalTest, TakesANameThatIsFree) {
  fs::create_directory(ours_);
  EXPECT_EQ(of_other().withdraw(), place_ / (".out.partial-" + std::to_string(::getpid()) + "-1"));
  EXPECT_TRUE(fs::is_empty(ours_));
}

TEST_F(WithdrawalTest, HidesAgainWhatWasPublished) {
  Withdrawal output = of_other();
  fs::rename(partial_, target_);
  EXPECT_EQ(output.withdraw(), ours_);
  EXPECT_TRUE(fs::exists(ours_ + "/new"));
  EXPECT_FALSE(fs::exists(target_));
}

// Another run may take the place between a look and the move.
TEST_F(WithdrawalTest, MovesBackWhatItDidNotMean) {
  Withdrawal output = of_other();
  fs::rename(partial_, target_);
  calls_->before_rename = [&] {
    fs::remove_all(target_);
    place_.put("out/third", "another run's");
  };
  EXPECT_EQ(output.withdraw(), std::nullopt);
  EXPECT_TRUE(fs::exists(target_ + "/third"));
}

TEST_F(WithdrawalTest, LeavesTheOutputOfAnotherRun) {
  Withdrawal output = of_other();
  fs::remove_all(partial_);
  place_.put("out/third", "another run's");
  place_.put(".out.partial-1-0/other", "another run's");
  calls_->before_rename = [] { ADD_FAILURE() << "moved, if only for a moment"; };
  EXPECT_EQ(output.withdraw(), std::nullopt);
  EXPECT_TRUE(fs::exists(target_ + "/third"));
  EXPECT_TRUE(fs::exists(partial_ + "/other"));
}

TEST_F(WithdrawalTest, FindsWhatAnotherProcessHasWithdrawn) {
  Withdrawal output = of_other();
  const std::string theirs = place_ / ".out.partial-2-0";
  fs::rename(partial_, theirs);
  EXPECT_EQ(output.withdraw(), theirs);
}

TEST_F(WithdrawalTest, NamesWhatItCannotMove) {
  calls_->denied = true;
  EXPECT_EQ(of_other().withdraw(), partial_);
  EXPECT_TRUE(fs::exists(partial_ + "/new"));
}

TEST_F(WithdrawalTest, NamesWhatItNeverSaw) {
  const std::string unseen = place_ / ".out.partial-1-1";
  Withdrawal output(unseen, target_, calls_);
  place_.put(".out.partial-1-1/new", "made later");
  EXPECT_EQ(output.withdraw(), unseen);
}

// The process that it was taken from goes on: before its rename, or after it.
TEST_F(WithdrawalTest, WhoseOutputItWasIsToldWhy) {
  for (const bool is_published : {false, true}) {
    std::optional<Withdrawal> output;
    std::optional<std::string> withdrawn;
    PublishOptions options;
    options.target = target_;
    options.may_appear = [&]() -> Status {
      if (!is_published) withdrawn = output->withdraw();
      return {};
    };
    options.may_stay = [&]() -> Status {
      if (!withdrawn) withdrawn = output->withdraw();
      return fail(Code::kRankLost, "taken for lost");
    };
    options.report_leftover = [](const std::string& path) { ADD_FAILURE() << path << " is left"; };
    auto publication = Publication::begin(options).value();
    EXPECT_FALSE(publication->replaces());
    output.emplace(publication->partial_path(), target_);
    EXPECT_EQ(publication->commit().error().message, "taken for lost");
    publication.reset();
    ASSERT_TRUE(withdrawn);
    EXPECT_TRUE(fs::exists(*withdrawn));
    EXPECT_FALSE(fs::exists(target_));
    fs::remove_all(*withdrawn);
  }
}

// What it replaced might be half removed when it is withdrawn.
TEST_F(WithdrawalTest, AnOutputThatMayBeWithdrawnReplacesNothing) {
  PublishOptions options;
  options.target = target_;
  options.may_replace = [](const std::string&) { return Replace::kWhole; };
  options.may_stay = [] { return Status(); };
  auto publication = Publication::begin(options).value();
  EXPECT_FALSE(publication->replaces());
  place_.put("out/third", "another run's");
  EXPECT_EQ(publication->commit().error().code, Code::kTargetExists);
  EXPECT_TRUE(fs::exists(target_ + "/third"));
  publication.reset();
  publication = Publication::begin(options).value();
  EXPECT_TRUE(publication->replaces());
}

}  // namespace
}  // namespace shardwright
