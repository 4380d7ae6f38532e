// SPDX-License-Identifier: Apache-2.0
#include "io/remove_tree.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "io/pending_call.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

TEST(RemoveTree, TakesAFolderWithAllThatIsInIt) {
  const TemporaryFolder place;
  for (int i = 0; i < 300; ++i) {  // more than are read at once
    place.put("gone/" + std::string(200, 'x') + std::to_string(i), "x");
    place.put("gone/deep/" + std::to_string(i) + "/deeper/file", "x");
  }
  place.put("kept", "x");
  EXPECT_EQ(remove_tree((place / "gone").c_str()), 0);
  EXPECT_EQ(place.tree(), "kept");
  EXPECT_EQ(remove_tree((place / "gone").c_str()), 0) << "nothing is there";
  EXPECT_EQ(remove_tree((place / "kept").c_str()), 0) << "a file";
  EXPECT_EQ(place.tree(), "");
}

TEST(RemoveTree, RemovesLinksAndNotWhatTheyLeadTo) {
  const TemporaryFolder place;
  place.put("kept/file", "x");
  fs::create_directory(place / "gone");
  fs::create_directory_symlink(place / "kept", place / "gone/link");
  fs::create_symlink("nowhere", place / "gone/dangling");
  fs::create_directory_symlink("kept", place / "alone");
  EXPECT_EQ(remove_tree((place / "gone").c_str()), 0);
  EXPECT_EQ(remove_tree((place / "alone").c_str()), 0);
  EXPECT_EQ(place.tree(), "kept kept/file");
}

TEST(RemoveTree, TakesFoldersHoweverDeepTheyLie) {
  const TemporaryFolder place;
  std::string deep = place / "gone";
  for (int i = 0; i < 900; ++i) deep += "/d";
  fs::create_directories(deep);
  for (int i = 0; i < 50; ++i) place.put("gone/" + std::to_string(i), "x");  // before it and behind
  place.put("gone/.deep-0", "what it would call what it moves");
  place.put("kept", "x");
  EXPECT_EQ(remove_tree((place / "gone").c_str()), 0);
  EXPECT_EQ(place.tree(), "kept");
}

// A folder full of files that each take their time is no call that hangs.
TEST(RemoveTree, BeginsAnewForEachEntry) {
  const TemporaryFolder place;
  for (int i = 0; i < 20; ++i) place.put("gone/" + std::to_string(i), "x");
  const std::string path = place / "gone";
  PendingCall pending("a removal", path);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_GE(longest_call()->time, std::chrono::seconds(1));
  EXPECT_EQ(remove_tree(path.c_str(), &pending), 0);
  EXPECT_LT(longest_call()->time, std::chrono::seconds(1));
}

}  // namespace
}  // namespace shardwright
