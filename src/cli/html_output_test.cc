// SPDX-License-Identifier: Apache-2.0
#include "cli/html_output.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPage = "<!doctype html><title>shardwright</title>";

TEST(PagePlace, IsFreeOrAPage) {
  const TemporaryFolder folder;
  EXPECT_TRUE(check_page_place("-o", folder / "new.html", false));
  folder.put("page.html", kPage);
  const Status again = check_page_place("-o", folder / "page.html", false);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kTargetExists);
  EXPECT_THAT(again.error().message, HasSubstr("give --overwrite"));
  EXPECT_TRUE(check_page_place("-o", folder / "page.html", true));
}

// Not even then: it may be the checkpoint.
TEST(PagePlace, LeavesEverythingElseAlone) {
  const TemporaryFolder folder;
  folder.put("model.safetensors", "weights");
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink("nowhere", folder / "link");
  for (const char* name : {"model.safetensors", "folder", "link"}) {
    const Status status = check_page_place("--html", folder / name, true);
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().message, HasSubstr("not what --html writes")) << name;
  }
}

TEST(Browser, IsTheOneThatTheUserNames) {
  const TemporaryFolder folder;
  folder.put("page.html", kPage);
  const std::string told = folder / "told";
  folder.put("browser", "#!/bin/sh\necho \"$1\" > '" + told + ".part'\nmv '" + told + ".part' '" +
                            told + "'\n");
  std::filesystem::permissions(folder / "browser", std::filesystem::perms::owner_all);
  Console::Capture capture;
  Console console(capture);
  setenv("BROWSER", (folder / "browser").c_str(), 1);
  open_in_browser(folder / "page.html", console);
  for (int tries = 0; tries < 500 && !std::filesystem::exists(told); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(folder.get("told"), folder / "page.html" + std::string("\n"));
  EXPECT_EQ(capture.messages, "");
  setenv("BROWSER", "/no/such/browser", 1);
  open_in_browser(folder / "page.html", console);
  unsetenv("BROWSER");
  EXPECT_THAT(capture.messages, HasSubstr("--open: found no program"));
  EXPECT_THAT(capture.messages, HasSubstr("page.html"));
}

}  // namespace
}  // namespace shardwright::cli
