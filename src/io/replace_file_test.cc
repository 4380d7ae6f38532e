// SPDX-License-Identifier: Apache-2.0
#include "io/replace_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

TEST(ReplaceFile, LeavesOnlyTheNewBytes) {
  const TemporaryFolder place;
  const std::string path = place / "index";
  ASSERT_TRUE(replace_file(path, "old and longer"));
  ASSERT_TRUE(replace_file(path, "new"));
  EXPECT_EQ(place.get("index"), "new");
  EXPECT_EQ(place.tree(), "index");
}

TEST(ReplaceFile, ReplacesALinkAndNotItsTarget) {
  const TemporaryFolder place;
  place.put("blob", "blob");
  fs::create_symlink(place / "blob", place / "index");
  ASSERT_TRUE(replace_file(place / "index", "new"));
  EXPECT_EQ(place.get("blob"), "blob");
  EXPECT_EQ(place.get("index"), "new");
}

TEST(ReplaceFile, SaysThatThereIsNoFolder) {
  const TemporaryFolder place;
  const Status status = replace_file(place / "none/index", "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNotFound);
}

TEST(WriteBackup, NeverWritesOverAnother) {
  const TemporaryFolder place;
  const std::string path = place / "index";
  EXPECT_EQ(write_backup(path, "1").value(), path + ".bak");
  EXPECT_EQ(write_backup(path, "2").value(), path + ".bak1");
  EXPECT_EQ(place.get("index.bak"), "1");
  EXPECT_EQ(place.get("index.bak1"), "2");
}

}  // namespace
}  // namespace shardwright
