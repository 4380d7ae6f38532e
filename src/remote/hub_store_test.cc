// SPDX-License-Identifier: Apache-2.0
#include "remote/hub_store.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr std::string_view kHub = "https://hub.example/";

std::string parts_of(std::string_view path) {
  const auto found = parse_hub_path(path, kHub);
  if (!found) return found.error().code == Code::kUsage ? "kUsage" : found.error().text();
  if (!*found) return "none";
  return (*found)->model + " " + (*found)->revision + " " + (*found)->folder;
}

TEST(HubPath, IsAModelARevisionAndAFolder) {
  EXPECT_EQ(parts_of("hf://o/m"), "o/m main ");
  EXPECT_EQ(parts_of("hf://o/m/"), "o/m main ");
  EXPECT_EQ(parts_of("hf://o/m/a/b//"), "o/m main a/b");
  EXPECT_EQ(parts_of("hf://o/m@v1.0"), "o/m v1.0 ");
  EXPECT_EQ(parts_of("hf://o/m@v1/a@b"), "o/m v1 a@b");
  EXPECT_EQ(parts_of("hf://o/m/a@b"), "o/m main a@b");
  EXPECT_EQ(parts_of("hf://o/m@refs/pr/7/a"), "o/m refs/pr/7 a");
  EXPECT_EQ(parts_of("hf://o/m@refs%2Fpr%2F7"), "o/m refs/pr/7 ");
}

TEST(HubPath, MayBeThePageOfAModel) {
  EXPECT_EQ(parts_of("https://hub.example/o/m"), "o/m main ");
  EXPECT_EQ(parts_of("https://hub.example/o/m/tree/v1/a%20b?x=1#y"), "o/m v1 a b");
  EXPECT_EQ(parts_of("https://hub.example/o/m/blob/main/a.json"), "o/m main a.json");
  EXPECT_EQ(parts_of("https://hub.example.org/o/m"), "none");
  EXPECT_EQ(parts_of("https://other/o/m"), "none");
  EXPECT_EQ(parts_of("s3://o/m"), "none");
}

TEST(HubPath, RefusesWhatNamesNoModel) {
  for (const char* path : {"hf://", "hf://o", "hf:///m", "hf://o/", "hf://../m", "hf://o/.m",
                           "hf://o/m m", "hf://o/m@", "hf://o/m@../x", "hf://o/m@%zz",
                           "https://hub.example/o", "https://hub.example/"}) {
    EXPECT_EQ(parts_of(path), "kUsage") << path;
  }
  const auto out = parse_hub_path("hf://o/m/../x", kHub);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, Code::kPathEscapes);
}

}  // namespace
}  // namespace shardwright
