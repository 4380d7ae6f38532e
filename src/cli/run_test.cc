// SPDX-License-Identifier: Apache-2.0
#include "cli/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;

TEST(RunCommandLine, SeparatesDataFromMessagesInsideTheProcess) {
  Console::Capture capture;
  Console console(capture);
  EXPECT_EQ(run_command_line({"--version"}, console), kExitFine);
  EXPECT_THAT(capture.output, HasSubstr(SHARDWRIGHT_VERSION));
  EXPECT_EQ(capture.messages, "");
  capture.output.clear();
  EXPECT_EQ(run_command_line({"verify", "--json", "/nowhere"}, console), kExitFailure);
  EXPECT_THAT(capture.output, HasSubstr("\"code\": \"SW0101\""));
  EXPECT_THAT(capture.messages, HasSubstr("error[SW0101]: /nowhere"));
}

TEST(RunCommandLine, AFollowerStopsAConversionBeforeItIsPublished) {
  const TemporaryFolder folder;
  std::atomic<bool> stop{false};
  int told = 0;
  Console::Capture capture;
  capture.run.cancelled = &stop;
  capture.run.on_progress = [&](const ConvertProgress& progress) {
    ++told;
    // Only once everything is moved: nothing but the last look can stop it now.
    stop = progress.bytes_done >= progress.bytes_total;
  };
  Console console(capture);
  const std::vector<std::string> words = {"convert", golden_path("hf/llama3/hf"), folder / "out",
                                          "--to", "torch_dist"};
  EXPECT_EQ(run_command_line(words, console), kExitFailure);
  EXPECT_GE(told, 1);
  EXPECT_THAT(capture.messages, HasSubstr("SW0109"));
  EXPECT_EQ(folder.tree(), "");
  capture.run.on_progress = nullptr;
  stop = false;
  EXPECT_EQ(run_command_line(words, console), kExitFine);
}

TEST(RunCommandLine, AManifestTakesThePlaceOfManifestsOnly) {
  const TemporaryFolder folder;
  const std::string model = golden_path("hf/llama3/hf");
  folder.put("precious.safetensors", read_file(model + "/model.safetensors"));
  const auto run = [&](const std::string& place) {
    Console::Capture capture;
    Console console(capture);
    const int status = run_command_line({"hash", model, "--manifest", place}, console);
    return std::to_string(status) + " " + capture.messages;
  };
  EXPECT_THAT(run(folder / "precious.safetensors"),
              testing::AllOf(HasSubstr("SW0107"), HasSubstr("not what --manifest writes")));
  EXPECT_EQ(folder.get("precious.safetensors"), read_file(model + "/model.safetensors"));
  EXPECT_EQ(run(folder / "manifest.json").substr(0, 1), "0");
  EXPECT_EQ(run(folder / "manifest.json").substr(0, 1), "0") << "an older one may go";
}

}  // namespace
}  // namespace shardwright::cli
