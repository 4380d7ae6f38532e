// SPDX-License-Identifier: Apache-2.0
// A replaced checkpoint that can't be removed is told, in words and in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "cli/run.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct LeftoverRun {
  int status = 0;
  std::string output;
  std::string messages;
};

LeftoverRun run_here(const std::vector<std::string>& words, const RunOptions& run = {}) {
  Console::Capture capture;
  capture.run = run;
  Console console(capture);
  const int status = run_command_line(words, console);
  return {status, capture.output, capture.messages};
}

// root may remove everything, so the test steps down for a moment.
LeftoverRun run_as_somebody(const std::vector<std::string>& words) {
  const uid_t user = ::geteuid();
  EXPECT_EQ(::seteuid(user == 0 ? 65534 : user), 0);
  LeftoverRun ran = run_here(words);
  EXPECT_EQ(::seteuid(user), 0);
  return ran;
}

TEST(Leftover, IsToldWhereTheReplacedCheckpointCannotBeRemoved) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  fs::copy(golden_path("hf/llama3/hf"), folder / "in", fs::copy_options::recursive);
  ASSERT_EQ(run_here({"convert", folder / "in", folder / "out", "--to", "torch_dist"}).status, 0);
  const std::vector<std::string> again = {"convert", folder / "in", folder / "out", "--to",
                                          "hf",      "--json",      "--overwrite"};
  // Files can be taken out of a folder only by who may write it.
  const std::string locked = folder / "out/iter_0000000";
  const fs::perms reading = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
  const fs::perms entering = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  fs::permissions(locked, reading | entering);
  const LeftoverRun ran = run_as_somebody(again);
  EXPECT_EQ(ran.status, kExitFine) << ran.messages;
  EXPECT_TRUE(fs::exists(folder / "out/model.safetensors"));
  EXPECT_THAT(ran.messages, HasSubstr("warning: what was replaced is still there"));
  EXPECT_THAT(ran.messages, HasSubstr(".out.partial-"));
  EXPECT_THAT(ran.output, HasSubstr("\"leftovers\": [\n"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().filename().string().starts_with(".out.partial-")) {
      fs::permissions(entry.path() / "iter_0000000", fs::perms::all);
    }
  }
  const LeftoverRun sound = run_here(again);
  EXPECT_EQ(sound.status, kExitFine) << sound.messages;
  EXPECT_THAT(sound.messages, Not(HasSubstr("warning")));
}

// Another process may have taken over what this one had begun.
TEST(Leftover, IsNotDeniedWhereAnotherProcessHasOne) {
  const TemporaryFolder folder;
  const std::atomic<bool> cancelled = true;
  RunOptions run;
  run.cancelled = &cancelled;
  const std::vector<std::string> words = {"convert", golden_path("hf/llama3/hf"), folder / "out",
                                          "--to", "torch_dist"};
  EXPECT_THAT(run_here(words, run).messages, HasSubstr("nothing was left behind"));
  fs::create_directory(folder / ".out.partial-1-0");
  const LeftoverRun ran = run_here(words, run);
  EXPECT_EQ(ran.status, kExitFailure);
  EXPECT_THAT(ran.messages, HasSubstr("SW0109"));
  EXPECT_THAT(ran.messages, Not(HasSubstr("nothing was left behind")));
}

}  // namespace
}  // namespace shardwright::cli
