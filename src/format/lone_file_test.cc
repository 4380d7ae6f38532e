// SPDX-License-Identifier: Apache-2.0
#include "format/lone_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "shardwright/checkpoint.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoneFileTest : public ::testing::Test {
 protected:
  LoneFileTest() {
    place_.put("in/model.safetensors", read_golden("hf/llama3/hf/model.safetensors"));
    place_.put("in/config.json", read_golden("hf/llama3/hf/config.json"));
    place_.put("in/other.safetensors", "not weights at all");
    place_.put("in/model.safetensors.index.json", "{}");
    place_.put("in/holiday.jpg", "x");
    place_.put("in/sharded/model.safetensors", "x");
  }
  TemporaryFolder place_;
};

TEST_F(LoneFileTest, IsACheckpointWithWhatDescribesIt) {
  const Checkpoint checkpoint = open_checkpoint(place_ / "in/model.safetensors").value();
  EXPECT_EQ(checkpoint.location.format, "hf");
  EXPECT_EQ(checkpoint.location.path, place_ / "in/model.safetensors");
  EXPECT_THAT(checkpoint.catalog.files, ElementsAre("model.safetensors", "config.json"));
  EXPECT_EQ(checkpoint.catalog.tensors.size(), 30U);
  EXPECT_EQ(checkpoint.hf_config, place_.get("in/config.json"));
  ASSERT_EQ(checkpoint.artifacts.size(), 1U);
  EXPECT_EQ(checkpoint.artifacts[0].first, "config.json");
}

TEST_F(LoneFileTest, MayBeALinkThatTheUserNames) {
  fs::create_directory(place_ / "links");
  fs::create_symlink(place_ / "in/model.safetensors", place_ / "links/weights.safetensors");
  const Checkpoint checkpoint = open_checkpoint(place_ / "links/weights.safetensors").value();
  EXPECT_EQ(checkpoint.catalog.tensors.size(), 30U);
  EXPECT_EQ(checkpoint.hf_config, "");
}

TEST_F(LoneFileTest, HidesTheRestOfItsFolder) {
  const auto directory = open_lone_file(place_ / "in/model.safetensors").value();
  for (const char* hidden :
       {"other.safetensors", "model.safetensors.index.json", "holiday.jpg", "sharded"}) {
    EXPECT_FALSE(directory->exists(hidden)) << hidden;
    EXPECT_EQ(directory->open(hidden).error().code, Code::kNotFound) << hidden;
  }
  EXPECT_EQ(directory->list("sharded").error().code, Code::kNotFound);
}

TEST_F(LoneFileTest, OtherSingleFilesAreNoCheckpoint) {
  for (const char* name : {"in/config.json", "in/holiday.jpg"}) {
    const auto opened = open_checkpoint(place_ / name);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::kUnknownFormat);
    EXPECT_THAT(opened.error().message, HasSubstr("shardwright inspect"));
  }
}

}  // namespace
}  // namespace shardwright
