// SPDX-License-Identifier: Apache-2.0
#include "remote/open_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote/open_remote.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

TEST(OpenPath, TellsServersFromFolders) {
  for (const char* path : {"hf://o/m", "s3://b/p", "https://h/x", "http://h/x", "HF://o/m",
                           "S3://b/p", "HTTP://h/x"}) {
    EXPECT_TRUE(is_remote_path(path)) << path;
  }
  for (const char* path :
       {"", "/a", "a", "o/m", "s3:/b", "ftp://h/x", "./hf://o/m", "./HF://o/m"}) {
    EXPECT_FALSE(is_remote_path(path)) << path;
  }
}

TEST(OpenPath, FoldersEndAtTheRootOfAServer) {
  const auto above = [](const char* path) { return folder_above(path).value_or("nothing"); };
  EXPECT_EQ(above("a"), ".");
  EXPECT_EQ(above("a/b/"), "a");
  EXPECT_EQ(above("/a"), "/");
  EXPECT_EQ(above("hf://o/m"), "nothing");
  EXPECT_EQ(above("hf://o/m/"), "nothing");
  EXPECT_EQ(above("hf://o/m@v1/a/b"), "hf://o/m@v1/a");
  EXPECT_EQ(above("hf://o/m/a"), "hf://o/m");
  EXPECT_EQ(above("s3://bucket"), "nothing");
  EXPECT_EQ(above("s3://bucket/a"), "s3://bucket");
  EXPECT_EQ(above("https://h:1/a/b"), "https://h:1/a");
  EXPECT_EQ(above("https://h"), "nothing");
  EXPECT_EQ(above("HF://o/m"), "nothing");
  EXPECT_EQ(above("HF://o/m/a"), "HF://o/m");
}

TEST(OpenPath, ReadsWhatLiesHere) {
  const TemporaryFolder folder;
  folder.put("a/b.json", "{}");
  EXPECT_TRUE(open_directory(folder / "a"));
  EXPECT_EQ(open_directory(folder / "none").error().code, Code::kNotFound);
  EXPECT_EQ(read_named(folder / "a/b.json", 2).value(), "{}");
  EXPECT_EQ(read_named(folder / "a/b.json", 1).error().code, Code::kLimit);
  EXPECT_EQ(open_named(folder / "a/b.json").value()->size(), 2U);
  EXPECT_TRUE(open_folder_of(folder / "a/none").value()->exists("b.json"));
  EXPECT_TRUE(is_file(folder / "a/b.json"));
  EXPECT_FALSE(is_file(folder / "a"));
  EXPECT_TRUE(is_folder(folder / "a"));
  EXPECT_FALSE(is_folder(folder / "a/b.json"));
}

// Nobody is asked about a name that no file of a model has.
TEST(OpenPath, AnAddressIsAFileByItsEnd) {
  EXPECT_TRUE(may_be_remote_file("https://h/model.safetensors"));
  EXPECT_TRUE(may_be_remote_file("s3://b/run/.metadata"));
  EXPECT_FALSE(may_be_remote_file("https://h/model"));
  EXPECT_FALSE(may_be_remote_file("https://h/model.safetensors/"));
}

TEST(OpenPath, RefusesAddressesThatAreNone) {
  for (const char* path : {"hf://o", "s3://", "https://", "https://me:word@h/x"}) {
    const auto refused = open_directory(path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, Code::kUsage) << path;
  }
}

}  // namespace
}  // namespace shardwright
