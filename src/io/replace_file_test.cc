// SPDX-License-Identifier: Apache-2.0
#include "io/replace_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "io/in_place.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

TEST(ReplaceFile, LeavesOnlyTheNewBytes) {
  const TemporaryFolder place;
  const std::string path = place / "index";
  ASSERT_TRUE(replace_file(path, "old and longer"));
  forget_outputs();
  EXPECT_FALSE(is_output_in_place());
  ASSERT_TRUE(replace_file(path, "new"));
  EXPECT_TRUE(is_output_in_place());
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

TEST(ReplaceFile, CanBeAskedBefore) {
  const TemporaryFolder place;
  EXPECT_TRUE(check_replaceable(place / "new"));
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
  const Status none = check_replaceable(place / "none/new");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_EQ(none.error().message.find("partial"), std::string::npos) << none.error().message;
}

TEST(Backup, NeverWritesOverAnother) {
  const TemporaryFolder place;
  const std::string path = place / "index";
  place.put("index", "now");
  place.put("index.bak", "older");
  const Backup backup = Backup::write(path, "now").value();
  EXPECT_EQ(backup.path(), path + ".bak1");
  EXPECT_EQ(place.get("index.bak"), "older");
  EXPECT_EQ(place.get("index.bak1"), "now");
}

TEST(Backup, StaysOnlyOfWhatWasReplaced) {
  const TemporaryFolder place;
  const std::string path = place / "index";
  place.put("index", "old");
  {
    const Backup backup = Backup::write(path, "old").value();
    EXPECT_TRUE(backup.is_needless());
    EXPECT_EQ(place.tree(), "index index.bak");
  }
  EXPECT_EQ(place.tree(), "index");
  {
    const Backup backup = Backup::write(path, "old").value();
    ASSERT_TRUE(replace_file(path, "new"));
    EXPECT_FALSE(backup.is_needless());
  }
  EXPECT_EQ(place.tree(), "index index.bak");
  EXPECT_EQ(place.get("index.bak"), "old");
}

TEST(Backup, OfWhatIsNotThereIsAnErrorAndLeavesNothing) {
  const TemporaryFolder place;
  EXPECT_EQ(Backup::write(place / "index", "x").error().code, Code::kNotFound);
  EXPECT_EQ(place.tree(), "");
}

}  // namespace
}  // namespace shardwright
