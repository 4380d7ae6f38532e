// SPDX-License-Identifier: Apache-2.0
#include "io/folder_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

TEST(FolderListing, TellsWhatLiesThereByName) {
  const TemporaryFolder place;
  place.put("b", "12345");
  place.put("a/deep", "x");
  place.put(".hidden", "");
  fs::create_symlink("a", place / "link");
  const auto entries = list_folder(place.path()).value();
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].name, ".hidden");
  EXPECT_EQ(entries[1].name, "a");
  EXPECT_EQ(entries[1].kind, EntryKind::kFolder);
  EXPECT_EQ(entries[1].bytes, 0U);
  EXPECT_EQ(entries[2].name, "b");
  EXPECT_EQ(entries[2].kind, EntryKind::kFile);
  EXPECT_EQ(entries[2].bytes, 5U);
  EXPECT_EQ(entries[3].name, "link");
  EXPECT_EQ(entries[3].kind, EntryKind::kOther);
}

TEST(FolderListing, LooksAtWhatHasAWantedNameOnly) {
  const TemporaryFolder place;
  place.put("a", "12");
  place.put("b", "345");
  const auto entries =
      list_folder(place.path(), [](std::string_view name) { return name == "b"; }).value();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_EQ(entries[0].bytes, 3U);
}

TEST(FolderListing, OfATreeHasEachFolderBehindItsParentAndEnterNoLinks) {
  const TemporaryFolder place;
  const TemporaryFolder beside;
  beside.put("far/file", "1234567");
  place.put("b/c/file", "12");
  place.put("a/file", "345");
  fs::create_directory_symlink(beside.path(), place / "link");
  const auto tree = read_tree(place.path()).value();
  const std::string root = place.path();
  EXPECT_THAT(tree.folders, ElementsAre(root, root + "/a", root + "/b", root + "/b/c"));
  EXPECT_EQ(tree.bytes, 5U);
}

TEST(FolderListing, OfWhatIsNoFolderIsAnError) {
  const TemporaryFolder place;
  place.put("file", "x");
  EXPECT_EQ(list_folder(place / "none").error().code, Code::kNotFound);
  EXPECT_FALSE(list_folder(place / "file"));
  EXPECT_EQ(read_tree(place / "none").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace shardwright
