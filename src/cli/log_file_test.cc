// SPDX-License-Identifier: Apache-2.0
#include "cli/log_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

std::string noon() { return "2026-01-31T12:00:00Z"; }

void add_to(const std::string& path, std::string_view line) {
  auto log = LogFile::open(path, noon);
  ASSERT_TRUE(log) << log.error().message;
  log->add(line);
  EXPECT_EQ(log->os_errno(), 0);
}

TEST(LogFile, GoesOnWithALogOfAnEarlierRun) {
  const TemporaryFolder folder;
  add_to(folder / "run.log", "one");
  add_to(folder / "run.log", "two");
  EXPECT_EQ(folder.get("run.log"), "2026-01-31T12:00:00Z one\n2026-01-31T12:00:00Z two\n");
  folder.put("empty", "");
  add_to(folder / "empty", "one");
}

TEST(LogFile, LeavesWhatIsNoLogAlone) {
  const TemporaryFolder folder;
  for (const std::string text : {"{", "2026-01-31T12:00:00Z", "2026-01-31 12:00:00Z or so more"}) {
    folder.put("model.safetensors", text);
    const auto log = LogFile::open(folder / "model.safetensors", noon);
    ASSERT_FALSE(log) << text;
    EXPECT_EQ(log.error().code, Code::kTargetExists);
    EXPECT_EQ(folder.get("model.safetensors"), text);
  }
}

TEST(LogFile, SaysWhyItCannotBeOpened) {
  const TemporaryFolder folder;
  const auto log = LogFile::open(folder / "no/such/folder", noon);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Code::kNotFound);
  EXPECT_THAT(log.error().message, testing::HasSubstr("--log-file"));
}

TEST(LogFile, RemembersThatTheDiskWasFull) {
  auto log = LogFile::open("/dev/full", noon);
  ASSERT_TRUE(log);
  log->add("lost");
  EXPECT_EQ(log->os_errno(), ENOSPC);
  log->add("also lost");
  EXPECT_EQ(log->os_errno(), ENOSPC);
}

TEST(LogFile, StampsLookLikeItsOwn) {
  const TemporaryFolder folder;
  folder.put("run.log", LogFile::utc_now() + " shardwright\n");
  add_to(folder / "run.log", "more");
}

}  // namespace
}  // namespace shardwright::cli
