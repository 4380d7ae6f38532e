// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_place.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/in_place.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

TEST(DemoPlace, ATemporaryOneGoesWithItsObject) {
  std::string path;
  {
    Result<DemoPlace> made = DemoPlace::make("");
    ASSERT_TRUE(made) << made.error().message;
    const DemoPlace place = *std::move(made);
    path = place.path();
    EXPECT_TRUE(fs::is_directory(path));
    EXPECT_EQ(place / "x", path + "/x");
    fs::create_directory(place / "x");
    note_output_in_place();
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(is_output_in_place()) << "it went with the place";
}

TEST(DemoPlace, AKeptOneStays) {
  const TemporaryFolder folder;
  {
    ASSERT_TRUE(DemoPlace::make(folder / "a/b"));
    note_output_in_place();
  }
  EXPECT_TRUE(is_output_in_place());
  forget_outputs();
  EXPECT_TRUE(fs::is_directory(folder / "a/b"));
  folder.put("file", "");
  const Result<DemoPlace> refused = DemoPlace::make(folder / "file/c");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
}

TEST(DemoPlace, IsNoFolderCalledAsAServerIs) {
  const TemporaryFolder folder;
  fs::current_path(folder.path());
  for (const char* address : {"s3://b/x", "hf://a/b", "https://a/b", "gs://b/x"}) {
    const Result<DemoPlace> refused = DemoPlace::make(address);
    ASSERT_FALSE(refused) << address;
    EXPECT_EQ(refused.error().code, Code::kUsage) << address;
    EXPECT_TRUE(refused.error().message.starts_with("--keep")) << refused.error().message;
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  fs::current_path("/");
}

TEST(FindDemoCheckpoint, FindsTheOneInTheSources) {
  const Result<std::string> found = find_demo_checkpoint();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(fs::exists(fs::path(*found) / "config.json"));
}

}  // namespace
}  // namespace shardwright::cli
