// SPDX-License-Identifier: Apache-2.0
#include "io/publish.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "base/endian.h"
#include "base/fail.h"
#include "io/faulty_directory.h"
#include "io/in_place.h"
#include "io/partial_outputs.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Real calls with a log; the nth one, or every one of a kind, gives an errno instead.
class LoggedCalls final : public PublishCalls {
 public:
  int fail_nth = 0;
  bool is_without_memory = false;  // then the failing call throws, where it moves something
  int exchange_errno = 0;
  int remove_errno = 0;
  std::vector<std::string> log;

  int sync_folder(const std::string& path) override {
    return counted("sync " + fs::path(path).filename().string(), 0,
                   [&] { return PublishCalls::sync_folder(path); });
  }
  int rename(const std::string& from, const std::string& to) override {
    return counted("rename", 0, [&] { return PublishCalls::rename(from, to); });
  }
  int exchange(const std::string& a, const std::string& b) override {
    return counted("exchange", exchange_errno, [&] { return PublishCalls::exchange(a, b); });
  }
  int remove_tree(const std::string& path) override {
    log.push_back("remove");
    return remove_errno != 0 ? remove_errno : PublishCalls::remove_tree(path);
  }

 private:
  template <class Call>
  int counted(std::string what, int always, Call call) {
    log.push_back(std::move(what));
    if (is_without_memory && log.back().starts_with("sync")) return call();
    if (++count_ == fail_nth && is_without_memory) throw std::bad_alloc();
    if (count_ == fail_nth) return EIO;
    return always != 0 ? always : call();
  }
  int count_ = 0;
};

class PublicationTest : public ::testing::Test {
 protected:
  PublishOptions options(bool overwrite = false) {
    return {.target = folder_ / "out",
            .sources = {folder_ / "source"},
            .kept = {},
            .bytes_needed = 10,
            .may_replace = overwrite ? replace_whole_ : nullptr,
            .report_leftover = [this](const std::string& path) { leftovers_.push_back(path); }};
  }
  static Status write(Directory& directory) {
    for (const char* path : {"a/b/data", "top"}) {
      auto file = SW_TRY(directory.create(path, 3));
      SW_TRY(file->write_at(0, as_bytes("new")));
      SW_TRY(file->sync());
    }
    return {};
  }
  Status publish(PublishOptions chosen, std::shared_ptr<PublishCalls> calls) {
    auto publication = SW_TRY(Publication::begin(std::move(chosen), std::move(calls)));
    SW_TRY(write(publication->directory()));
    return publication->commit();
  }
  Error refusal(PublishOptions chosen) {
    const std::string before = folder_.tree();
    auto publication = Publication::begin(std::move(chosen));
    EXPECT_FALSE(publication.has_value());
    EXPECT_EQ(folder_.tree(), before) << "a refusal touches nothing";
    return publication ? Error{} : publication.error();
  }

  const std::function<Result<Replace>(const std::string&)> replace_whole_ =
      [](const std::string&) -> Result<Replace> { return Replace::kWhole; };
  TemporaryFolder folder_;
  std::vector<std::string> leftovers_;
};

TEST_F(PublicationTest, AppearsWholeWithItsFoldersDurable) {
  auto calls = std::make_shared<LoggedCalls>();
  const Status status = publish(options(), calls);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(folder_.tree(), "out out/a out/a/b out/a/b/data out/top");
  EXPECT_EQ(folder_.get("out/a/b/data"), "new");
  ASSERT_EQ(calls->log.size(), 5u);
  EXPECT_THAT(calls->log[0], HasSubstr("sync .out.partial-"));
  EXPECT_EQ(calls->log[1], "sync a");
  EXPECT_EQ(calls->log[2], "sync b");
  EXPECT_EQ(calls->log[3], "rename");
  EXPECT_EQ(calls->log[4], "sync " + folder_.path().filename().string());
  EXPECT_THAT(leftovers_, IsEmpty());
}

TEST_F(PublicationTest, IsHiddenUntilCommit) {
  auto publication = Publication::begin(options()).value();
  ASSERT_TRUE(write(publication->directory()));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  EXPECT_EQ(fs::path(publication->partial_path()).parent_path(), folder_.path());
  EXPECT_THAT(fs::path(publication->partial_path()).filename().string(),
              ::testing::StartsWith(".out.partial-" + std::to_string(::getpid())));
  publication.reset();
  EXPECT_EQ(folder_.tree(), "") << "without commit nothing stays";
}

// What a process does that ends at once, with no memory to unwind.
TEST_F(PublicationTest, IsTakenBackWhereNothingIsDestroyed) {
  PublishOptions chosen = options();
  chosen.target = folder_ / "no/such/out";
  auto publication = Publication::begin(chosen).value();
  ASSERT_TRUE(write(publication->directory()));
  BegunOutput::abandon_all();
  EXPECT_EQ(folder_.tree(), "");
  publication.reset();
  ASSERT_TRUE(publish(chosen, std::make_shared<LoggedCalls>()));
  auto committed = Publication::begin(options()).value();
  ASSERT_TRUE(write(committed->directory()));
  ASSERT_TRUE(committed->commit());
  const std::string whole = folder_.tree();
  BegunOutput::abandon_all();
  EXPECT_EQ(folder_.tree(), whole) << "what is in its place stays";
}

TEST_F(PublicationTest, NamesWhatIsNotTakenBackWhereNothingIsDestroyed) {
  PublishOptions chosen = options();
  chosen.keeps_unfinished = true;
  auto kept = Publication::begin(chosen).value();
  chosen.target = folder_ / "other";
  chosen.keeps_unfinished = false;
  auto moved = Publication::begin(chosen).value();
  fs::rename(moved->partial_path(), folder_ / "aside");
  fs::create_directory(moved->partial_path());
  testing::internal::CaptureStderr();
  BegunOutput::abandon_all();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("out of memory; remove " + kept->partial_path() + "\n"));
  EXPECT_THAT(told, HasSubstr("out of memory; remove " + moved->partial_path() + "\n"));
  EXPECT_TRUE(fs::exists(kept->partial_path()));
  EXPECT_TRUE(fs::exists(moved->partial_path())) << "somebody else's";
  fs::remove(moved->partial_path());
  fs::remove(folder_ / "aside");
}

TEST_F(PublicationTest, MessagesNameTheTargetOnly) {
  auto publication = Publication::begin(options()).value();
  ASSERT_TRUE(publication->directory().create("a/b", 1));
  const auto again = publication->directory().create("a/b", 1);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, ::testing::StartsWith((folder_ / "out/a/b") + ": "));
  EXPECT_THAT(again.error().message, ::testing::Not(HasSubstr(".partial-")));
}

// By whoever asks nobody, such as cp.
TEST_F(PublicationTest, WhatAppearedMeanwhileStays) {
  auto publication = Publication::begin(options()).value();
  ASSERT_TRUE(write(publication->directory()));
  folder_.put("out/theirs", "x");
  EXPECT_EQ(publication->commit().error().code, Code::kTargetExists);
  publication.reset();
  EXPECT_EQ(folder_.tree(), "out out/theirs");
}

TEST_F(PublicationTest, TakesTheNameOfAnEmptyFolder) {
  fs::create_directory(folder_ / "out");
  EXPECT_TRUE(publish(options(), std::make_shared<PublishCalls>()));
  EXPECT_EQ(folder_.get("out/top"), "new");
}

TEST_F(PublicationTest, ReplacesAFolderWhenAsked) {
  for (const int exchange_errno : {0, EINVAL, ENOSYS}) {
    folder_.put("out/old/file", "old");
    auto calls = std::make_shared<LoggedCalls>();
    calls->exchange_errno = exchange_errno;
    const Status status = publish(options(true), calls);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(folder_.tree(), "out out/a out/a/b out/a/b/data out/top");
    EXPECT_THAT(leftovers_, IsEmpty());
    EXPECT_EQ(calls->log.back(), "remove");
    EXPECT_THAT(calls->log[calls->log.size() - 2], HasSubstr("sync"))
        << "the old folder goes only when the new one is durable";
    fs::remove_all(folder_ / "out");
  }
}

TEST_F(PublicationTest, EveryFailingCallLeavesTheOldOrTheNewWhole) {
  for (const int exchange_errno : {0, EINVAL}) {
    int failures = 0;
    for (int nth = 1;; ++nth) {
      fs::remove_all(folder_ / "out");
      folder_.put("out/old", "old");
      auto calls = std::make_shared<LoggedCalls>();
      calls->fail_nth = nth;
      calls->exchange_errno = exchange_errno;
      leftovers_.clear();
      const Status status = publish(options(true), calls);
      if (status) break;
      ++failures;
      EXPECT_EQ(status.error().code, Code::kIo);
      const bool in_place = status.error().message.find("is in place") != std::string::npos;
      EXPECT_EQ(folder_.get("out/old"), in_place ? "" : "old");
      EXPECT_EQ(folder_.get("out/top"), in_place ? "new" : "");
      if (!in_place) {
        EXPECT_EQ(folder_.tree(), "out out/old");
      }
      for (const std::string& path : leftovers_) {
        EXPECT_TRUE(in_place);
        EXPECT_TRUE(fs::exists(fs::path(path) / "old"));
        fs::remove_all(path);
      }
      EXPECT_EQ(leftovers_.size(), in_place ? 1u : 0u);
      ASSERT_LT(nth, 100);
    }
    EXPECT_EQ(failures, exchange_errno == 0 ? 6 : 8);
  }
}

TEST_F(PublicationTest, EveryFailingWriteLeavesNothing) {
  for (const Fault fault : {Fault::kError, Fault::kShorten, Fault::kNoSpace}) {
    int failures = 0;
    for (std::uint64_t nth = 1;; ++nth) {
      auto publication = Publication::begin(options()).value();
      FaultyDirectory faulty(publication->directory(), fault, nth);
      const Status status = write(faulty);
      if (!faulty.fired()) {
        ASSERT_TRUE(status);
        break;
      }
      ++failures;
      EXPECT_FALSE(status);
      publication.reset();
      EXPECT_EQ(folder_.tree(), "");
    }
    EXPECT_EQ(failures, 6);
  }
}

TEST_F(PublicationTest, NamesWhatItCannotRemove) {
  auto calls = std::make_shared<LoggedCalls>();
  calls->remove_errno = EACCES;
  std::string partial;
  {
    auto publication = Publication::begin(options(), calls).value();
    partial = publication->partial_path();
  }
  EXPECT_THAT(leftovers_, ElementsAre(partial));
}

TEST_F(PublicationTest, CommitsOnce) {
  auto publication = Publication::begin(options()).value();
  ASSERT_TRUE(publication->commit());
  EXPECT_EQ(publication->commit().error().code, Code::kInternal);
  publication.reset();
  EXPECT_EQ(folder_.tree(), "out");
}

TEST_F(PublicationTest, RefusesAFolderWithContents) {
  folder_.put("out/old", "old");
  const Error error = refusal(options());
  EXPECT_EQ(error.code, Code::kTargetExists);
  EXPECT_THAT(error.message, HasSubstr("found a folder that is not empty"));
}

TEST_F(PublicationTest, RefusesATargetThatIsNoFolder) {
  folder_.put("out", "a file");
  EXPECT_EQ(refusal(options(true)).code, Code::kTargetExists);
  fs::remove(folder_ / "out");
  fs::create_symlink("nowhere", folder_ / "out");
  EXPECT_EQ(refusal(options(true)).code, Code::kTargetExists) << "a link that leads nowhere";
}

TEST_F(PublicationTest, DotsBehindAFolderThatIsNotThereYetNameIt) {
  for (const char* spelled : {"new/.", "new/./", "new/x/..", "new/../new/."}) {
    PublishOptions chosen = options();
    chosen.target = folder_ / spelled;
    const auto publication = Publication::begin(chosen);
    ASSERT_TRUE(publication) << spelled << ": " << publication.error().message;
    EXPECT_EQ((*publication)->target_path(), folder_ / "new") << spelled;
  }
}

TEST_F(PublicationTest, RefusesAMountPoint) {
  PublishOptions chosen = options(true);
  chosen.target = "/proc";
  const Error error = refusal(chosen);
  EXPECT_EQ(error.code, Code::kTargetExists);
  EXPECT_THAT(error.message, HasSubstr("is a mount point"));
  chosen.target = "/";
  EXPECT_EQ(refusal(chosen).code, Code::kTargetExists);
}

TEST_F(PublicationTest, NeverReplacesAHomeOrTheCurrentDirectory) {
  folder_.put("a/home/me/file", "x");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ASSERT_EQ(::setenv("HOME", (folder_ / "a/home/me").c_str(), 1), 0);
  PublishOptions chosen = options(true);
  for (const char* target : {"a", "a/home", "a/home/me"}) {
    chosen.target = folder_ / target;
    const Error error = refusal(chosen);
    EXPECT_EQ(error.code, Code::kTargetExists) << target;
    EXPECT_THAT(error.message, HasSubstr("is a home directory, or holds one,"));
  }
  ASSERT_EQ(::setenv("HOME", home.c_str(), 1), 0);
  const fs::path before = fs::current_path();
  fs::current_path(folder_ / "a/home");
  for (const char* target : {".", "..", "../home/../home"}) {
    chosen.target = target;
    const Error error = refusal(chosen);
    EXPECT_EQ(error.code, Code::kTargetExists) << target;
    EXPECT_THAT(error.message, HasSubstr("is the current directory, or holds it,"));
  }
  fs::current_path(before);
}

TEST_F(PublicationTest, AsksHowAFolderMayBeReplaced) {
  folder_.put("out/old", "old");
  PublishOptions chosen = options();
  std::string asked;
  chosen.may_replace = [&](const std::string& target) -> Result<Replace> {
    asked = target;
    return std::unexpected(Error{Code::kTargetExists, "precious", 0});
  };
  EXPECT_EQ(refusal(chosen).message, "precious");
  EXPECT_EQ(asked, folder_ / "out");
  // Once more before it goes: somebody may have put something there meanwhile.
  int times = 0;
  chosen.may_replace = [&](const std::string&) -> Result<Replace> {
    if (++times == 1) return Replace::kWhole;
    return std::unexpected(Error{Code::kTargetExists, "precious by now", 0});
  };
  EXPECT_EQ(publish(chosen, std::make_shared<PublishCalls>()).error().message, "precious by now");
  EXPECT_EQ(folder_.tree(), "out out/old");
}

class EntriesPublicationTest : public PublicationTest {
 protected:
  PublishOptions entries() {
    PublishOptions chosen = options();
    chosen.may_replace = [](const std::string&) -> Result<Replace> { return Replace::kEntries; };
    return chosen;
  }
  void put_run() {
    fs::remove_all(folder_ / "out");
    folder_.put("out/a/old", "old");
    folder_.put("out/top", "old");
    folder_.put("out/train.log", "precious");
    folder_.put("out/other/file", "precious");
  }
  const std::string old_ = "out out/a out/a/old out/other out/other/file out/top out/train.log";
  const std::string new_ =
      "out out/a out/a/b out/a/b/data out/other out/other/file out/top out/train.log";
};

TEST_F(EntriesPublicationTest, ReplacesOnlyWhatItWrites) {
  for (const int exchange_errno : {0, EINVAL}) {
    put_run();
    auto calls = std::make_shared<LoggedCalls>();
    calls->exchange_errno = exchange_errno;
    const Status status = publish(entries(), calls);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(folder_.tree(), new_);
    EXPECT_EQ(folder_.get("out/top"), "new");
    EXPECT_EQ(folder_.get("out/train.log"), "precious");
    EXPECT_EQ(calls->log.back(), "remove");
  }
  put_run();
  fs::remove_all(folder_ / "out/a");
  EXPECT_TRUE(publish(entries(), std::make_shared<PublishCalls>()));
  EXPECT_EQ(folder_.tree(), new_) << "an iteration that was not there is added";
}

TEST_F(EntriesPublicationTest, EveryFailingCallLeavesTheOldOrTheNewWhole) {
  for (const int exchange_errno : {0, EINVAL}) {
    int failures = 0;
    for (int nth = 1;; ++nth) {
      put_run();
      auto calls = std::make_shared<LoggedCalls>();
      calls->fail_nth = nth;
      calls->exchange_errno = exchange_errno;
      leftovers_.clear();
      const Status status = publish(entries(), calls);
      if (status) break;
      ++failures;
      const bool in_place = status.error().message.find("is in place") != std::string::npos;
      for (const std::string& path : leftovers_) fs::remove_all(path);
      EXPECT_EQ(folder_.tree(), in_place ? new_ : old_) << nth;
      EXPECT_EQ(folder_.get("out/top"), in_place ? "new" : "old");
      ASSERT_LT(nth, 100);
    }
    EXPECT_EQ(failures, exchange_errno == 0 ? 7 : 10);
  }
}

TEST_F(EntriesPublicationTest, WhatMayNotStayIsTakenBack) {
  put_run();
  PublishOptions refused = entries();
  refused.may_stay = [this]() -> Status {
    EXPECT_EQ(folder_.get("out/top"), "new");
    return fail(Code::kRankLost, "the others are gone");
  };
  EXPECT_EQ(publish(refused, std::make_shared<PublishCalls>()).error().message,
            "the others are gone");
  EXPECT_EQ(folder_.tree(), old_);
  EXPECT_EQ(folder_.get("out/top"), "old");
  EXPECT_FALSE(is_output_in_place());
}

TEST_F(EntriesPublicationTest, AFileThatCannotBeSwappedIsNotTakenBackAndNamed) {
  put_run();
  PublishOptions refused = entries();
  refused.may_stay = [] { return Status(fail(Code::kRankLost, "the others are gone")); };
  auto calls = std::make_shared<LoggedCalls>();
  calls->exchange_errno = EINVAL;
  const std::string message = publish(refused, calls).error().message;
  EXPECT_EQ(message, "the others are gone; " + (folder_ / "out/top") + " is the new one");
  EXPECT_EQ(folder_.get("out/top"), "new");
}

TEST_F(EntriesPublicationTest, WhatWasMovedIsMovedBackWhereMemoryRunsOut) {
  forget_outputs();
  for (int nth = 1; nth <= 3; ++nth) {  // a folder that is in the way, the two swapped, a file
    put_run();
    auto calls = std::make_shared<LoggedCalls>();
    calls->fail_nth = nth;
    calls->is_without_memory = true;
    const Status status = publish(entries(), calls);
    ASSERT_FALSE(status) << nth;
    EXPECT_EQ(status.error().code, Code::kOutOfMemory);
    EXPECT_EQ(folder_.tree(), old_) << nth;
    EXPECT_EQ(folder_.get("out/top"), "old");
  }
  EXPECT_FALSE(is_output_in_place());
  ASSERT_TRUE(publish(entries(), std::make_shared<PublishCalls>()));
  EXPECT_TRUE(is_output_in_place());
  forget_outputs();
}

TEST_F(PublicationTest, WhatMayNotStayIsTakenBack) {
  for (const bool is_there : {false, true}) {
    for (const int exchange_errno : {0, EINVAL}) {
      fs::remove_all(folder_ / "out");
      if (is_there) folder_.put("out/old", "old");
      const std::string before = folder_.tree();
      PublishOptions refused = options(true);
      refused.may_stay = [this]() -> Status {
        EXPECT_EQ(folder_.get("out/top"), "new");
        return fail(Code::kRankLost, "the others are gone");
      };
      auto calls = std::make_shared<LoggedCalls>();
      calls->exchange_errno = exchange_errno;
      forget_outputs();
      EXPECT_EQ(publish(refused, calls).error().message, "the others are gone");
      EXPECT_EQ(folder_.tree(), before);
      EXPECT_THAT(leftovers_, IsEmpty());
      EXPECT_FALSE(is_output_in_place());
    }
  }
}

TEST_F(PublicationTest, AsksAtOnceAndWhenItIsDurableWhetherItMayStay) {
  PublishOptions asking = options();
  auto calls = std::make_shared<LoggedCalls>();
  asking.may_stay = [&]() -> Status {
    calls->log.push_back("asked");
    return {};
  };
  ASSERT_TRUE(publish(asking, calls));
  const auto& log = calls->log;
  ASSERT_GE(log.size(), 4U);
  EXPECT_THAT(std::vector(log.end() - 4, log.end()),
              ElementsAre("rename", "asked", HasSubstr("sync"), "asked"));
}

TEST_F(PublicationTest, WhatMayNotAppearIsNeverMoved) {
  PublishOptions refused = options();
  refused.may_appear = [] { return Status(fail(Code::kCancelled, "stopped")); };
  auto calls = std::make_shared<LoggedCalls>();
  EXPECT_EQ(publish(refused, calls).error().message, "stopped");
  EXPECT_THAT(calls->log, Not(Contains("rename")));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(PublicationTest, DoesTheLastStepWhenAllElseIsDurable) {
  auto calls = std::make_shared<LoggedCalls>();
  auto publication = Publication::begin(options(), calls).value();
  ASSERT_TRUE(write(publication->directory()));
  const auto act = [&]() -> Status {
    calls->log.emplace_back("act");
    return {};
  };
  ASSERT_TRUE(publication->commit({act, [&] { calls->log.emplace_back("undo"); }}));
  const auto& log = calls->log;
  ASSERT_EQ(log.size(), 7U);
  EXPECT_EQ(log[3], "act");
  EXPECT_THAT(log[4], HasSubstr("sync .out.partial-")) << "it is durable too";
  EXPECT_EQ(log[5], "rename");
}

// Each call that may fail between it and the end.
TEST_F(PublicationTest, UndoesTheLastStepWhereNothingAppears) {
  for (const int nth : {4, 5}) {
    auto calls = std::make_shared<LoggedCalls>();
    calls->fail_nth = nth;
    PublishOptions chosen = options();
    chosen.keeps_unfinished = true;
    auto publication = Publication::begin(chosen, calls).value();
    ASSERT_TRUE(write(publication->directory()));
    std::string done;
    const auto act = [&]() -> Status {
      done += "act ";
      return {};
    };
    EXPECT_FALSE(publication->commit({act, [&] { done += "undo"; }}));
    EXPECT_EQ(done, "act undo") << nth;
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
}

// By the name of the parts' folder parts that are run again would write into the old output.
TEST_F(PublicationTest, LeavesNothingOldWhereThePartsWork) {
  folder_.put("out/old", "old");
  const std::string parts = parts_folder((folder_.path() / "out").string(), std::string(16, 'a'));
  const auto publication_of = [&](const std::shared_ptr<LoggedCalls>& calls) {
    fs::create_directory(parts);
    PublishOptions chosen = options(true);
    chosen.parts_id = std::string(16, 'a');
    chosen.keeps_unfinished = true;
    auto publication = Publication::begin(chosen, calls).value();
    EXPECT_TRUE(write(publication->directory()));
    return publication;
  };
  auto failing = std::make_shared<LoggedCalls>();
  failing->exchange_errno = EIO;
  EXPECT_FALSE(publication_of(failing)->commit());
  EXPECT_TRUE(fs::exists(parts + "/top")) << "what parts wrote is where it was";
  EXPECT_EQ(folder_.get("out/old"), "old");
  fs::remove_all(parts);
  auto calls = std::make_shared<LoggedCalls>();
  calls->remove_errno = EACCES;
  ASSERT_TRUE(publication_of(calls)->commit());
  EXPECT_FALSE(fs::exists(parts));
  ASSERT_EQ(leftovers_.size(), 1U);
  EXPECT_THAT(leftovers_[0], HasSubstr(".out.partial-"));
  EXPECT_EQ(folder_.get("out/top"), "new");
}

TEST_F(PublicationTest, NamesTheReplacedFolderThatItCannotRemove) {
  folder_.put("out/old", "old");
  auto calls = std::make_shared<LoggedCalls>();
  calls->remove_errno = EACCES;
  ASSERT_TRUE(publish(options(true), calls));
  ASSERT_EQ(leftovers_.size(), 1U);
  EXPECT_TRUE(fs::exists(fs::path(leftovers_[0]) / "old"));
}

TEST_F(PublicationTest, RefusesTargetAndSourceInEachOther) {
  folder_.put("source/file", "x");
  folder_.put("source/deep/er/file", "x");
  fs::create_directory_symlink(folder_ / "source", folder_ / "link");
  const auto with = [&](const std::string& target, const std::string& source) {
    PublishOptions chosen = options(true);
    chosen.target = target;
    chosen.sources = {folder_ / "unrelated", source};
    return chosen;
  };
  const std::string source = folder_ / "source";
  for (const auto& [target, from] : {std::pair(source, source),
                                     {source + "/new", source},
                                     {source + "/", source},
                                     {source, source + "/"},
                                     {folder_ / "link", source},
                                     {folder_ / "link/new", source},
                                     {source, folder_ / "link"},
                                     {source, source + "/deep/er"},
                                     {source, source + "/file"},
                                     {folder_ / "absent/../source/new", source},
                                     {source + "/deep/..", source}}) {
    const Error error = refusal(with(target, from));
    EXPECT_EQ(error.code, Code::kTargetInsideSource) << target << " from " << from;
    EXPECT_THAT(error.message, HasSubstr("expected them apart"));
  }
  EXPECT_TRUE(Publication::begin(with(folder_ / "source2", source)))
      << "a common beginning of the names is not a common folder";
  EXPECT_TRUE(Publication::begin(with(folder_ / "sour", source)));
}

// A config folder was read by then: a new folder in it takes nothing away.
TEST_F(PublicationTest, RefusesATargetAroundWhatIsKept) {
  folder_.put("kept/deep/file", "x");
  const auto with = [&](const std::string& target, const std::string& kept) {
    PublishOptions chosen = options(true);
    chosen.target = target;
    chosen.kept = {kept};
    return chosen;
  };
  const std::string kept = folder_ / "kept";
  for (const auto& [target, read] :
       {std::pair(kept, kept), {kept, kept + "/deep"}, {kept, kept + "/deep/file"}}) {
    EXPECT_EQ(refusal(with(target, read)).code, Code::kTargetInsideSource) << target << read;
  }
  EXPECT_TRUE(Publication::begin(with(kept + "/new", kept)));
  EXPECT_TRUE(Publication::begin(with(kept + "/new", kept + "/deep/file")));
}

// As `mkdir -p` would; what was made for nothing goes again.
TEST_F(PublicationTest, MakesMissingParents) {
  auto calls = std::make_shared<LoggedCalls>();
  PublishOptions chosen = options();
  folder_.put("there/file", "x");
  chosen.target = folder_ / "there/no/such/out";
  const std::string before = folder_.tree();
  {
    auto publication = Publication::begin(chosen).value();
    ASSERT_TRUE(write(publication->directory()));
    EXPECT_TRUE(fs::exists(folder_ / "there/no/such"));
  }
  EXPECT_EQ(folder_.tree(), before);
  {
    auto publication = Publication::begin(chosen).value();
    folder_.put("there/no/other", "somebody else's");
  }
  EXPECT_EQ(folder_.get("there/no/other"), "somebody else's");
  EXPECT_FALSE(fs::exists(folder_ / "there/no/such"));
  const Status status = publish(chosen, calls);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(folder_.get("there/no/such/out/top"), "new");
  EXPECT_EQ(calls->log.back(), "sync no") << "the folder that was made is durable too";
  chosen.target = folder_ / "there/file/out";
  EXPECT_EQ(refusal(chosen).code, Code::kNotFound);
  fs::create_symlink("gone", folder_ / "link");
  chosen.target = folder_ / "link/out";
  EXPECT_EQ(refusal(chosen).code, Code::kNotFound);
}

TEST_F(PublicationTest, RefusesAForbiddenParent) {
  PublishOptions chosen = options();
  chosen.target = "";
  EXPECT_EQ(refusal(chosen).code, Code::kUsage);

  fs::create_directory(folder_ / "locked");
  fs::permissions(folder_ / "locked", fs::perms::owner_read | fs::perms::owner_exec |
                                          fs::perms::others_read | fs::perms::others_exec);
  fs::permissions(folder_.path(), fs::perms::all);
  chosen.target = folder_ / "locked/out";
  // root may write everywhere, so the test steps down for a moment.
  const uid_t user = ::geteuid();
  ASSERT_EQ(::seteuid(user == 0 ? 65534 : user), 0);
  const auto forbidden = Publication::begin(chosen);
  ASSERT_EQ(::seteuid(user), 0);
  ASSERT_FALSE(forbidden);
  EXPECT_EQ(forbidden.error().code, Code::kPermission);
}

TEST_F(PublicationTest, RefusesWhatCannotFit) {
  PublishOptions chosen = options();
  chosen.bytes_needed = std::uint64_t{1} << 62;
  const Error error = refusal(chosen);
  EXPECT_EQ(error.code, Code::kDiskSpace);
  EXPECT_THAT(error.message, HasSubstr("expected at least 4611686018427387904"));
}

TEST_F(PublicationTest, ListsWhatKilledRunsLeft) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string dead = folder_ / (".out.partial-" + std::to_string(child) + "-0");
  const std::string old = dead + "-old";
  for (const std::string& path :
       {folder_ / "out", dead, old, folder_ / ".out.partial-x-0", folder_ / ".out.partial-7",
        folder_ / (".other.partial-" + std::to_string(child) + "-0")}) {
    fs::create_directory(path);
  }
  const auto alive = Publication::begin(options()).value();
  EXPECT_THAT(stale_partials(folder_ / "out"), ElementsAre(dead, old));
  EXPECT_THAT(stale_partials(folder_ / "out/"), ElementsAre(dead, old));
  // Locked, as by a process of another container whose number means nothing here.
  const UniqueFd held(::open(dead.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  EXPECT_THAT(stale_partials(folder_ / "out"), ElementsAre(old));
  EXPECT_THAT(stale_partials(folder_ / "no/such/out"), IsEmpty());
}

}  // namespace
}  // namespace shardwright
