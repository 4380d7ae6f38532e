// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kIndex = "model.safetensors.index.json";

class RebuildIndex : public ::testing::Test {
 protected:
  void SetUp() override {
    Planted::convert("hf/llama3/hf", "hf", {}, planted_.path());
    good_ = planted_.get(kIndex);
  }

  Planted planted_;
  std::string good_;
};

TEST_F(RebuildIndex, LeavesARightOneAlone) {
  const std::string before = planted_.place().tree();
  const IndexReport report = rebuild_index(planted_.path()).value();
  EXPECT_TRUE(report.was_right);
  EXPECT_EQ(report.tensors, 30u);
  EXPECT_EQ(planted_.place().tree(), before);
}

TEST_F(RebuildIndex, ListsGhostsAndMissingKeysAndKeepsTheOldOne) {
  planted_.edit_json(kIndex, [](auto& index) {
    auto& map = index["weight_map"];
    map["ghost"] = map["lm_head.weight"];
    const std::string other = map["model.norm.weight"];
    map.erase("model.norm.weight");
    map["model.embed_tokens.weight"] = "nowhere.safetensors";
  });
  const std::string broken = planted_.get(kIndex);
  const IndexReport report = rebuild_index(planted_.path()).value();
  EXPECT_THAT(report.ghosts, ElementsAre("ghost"));
  EXPECT_THAT(report.unlisted, ElementsAre("model.norm.weight"));
  EXPECT_THAT(report.misplaced, ElementsAre("model.embed_tokens.weight"));
  EXPECT_EQ(planted_.get(kIndex), good_);
  EXPECT_EQ(report.backup, planted_.path() + "/" + kIndex + ".bak");
  EXPECT_EQ(planted_.get(std::string(kIndex) + ".bak"), broken);
  EXPECT_FALSE(verify_checkpoint(planted_.path(), {})->has_errors());
}

TEST_F(RebuildIndex, MakesOneWhereThereIsNoneOrNoJson) {
  planted_.remove(kIndex);
  EXPECT_THAT(rebuild_index(planted_.path())->backup, IsEmpty());
  EXPECT_EQ(planted_.get(kIndex), good_);
  planted_.put(kIndex, "not json");
  ASSERT_TRUE(rebuild_index(planted_.path()));
  EXPECT_EQ(planted_.get(kIndex), good_);
  planted_.put(kIndex, "again not json");
  EXPECT_EQ(rebuild_index(planted_.path())->backup, planted_.path() + "/" + kIndex + ".bak1");
}

TEST_F(RebuildIndex, LeavesOtherFilesOut) {
  planted_.put("consolidated.safetensors", read_golden("hf/qwen3/hf/model.safetensors"));
  planted_.remove(kIndex);
  const IndexReport report = rebuild_index(planted_.path()).value();
  EXPECT_THAT(report.left_out, ElementsAre("consolidated.safetensors"));
  EXPECT_EQ(planted_.get(kIndex), good_);
}

TEST_F(RebuildIndex, RefusesAKeyInTwoFiles) {
  const std::string file = nlohmann::json::parse(good_)["weight_map"].begin().value();
  planted_.put("model-copy.safetensors", planted_.get(file));
  planted_.remove(kIndex);
  const auto report = rebuild_index(planted_.path());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kDuplicateName);
  EXPECT_EQ(planted_.get(kIndex), "");
}

// The index would hide that anything is missing.
TEST_F(RebuildIndex, RefusesNumbersWithAGap) {
  planted_.remove(nlohmann::json::parse(good_)["weight_map"].begin().value());
  const auto report = rebuild_index(planted_.path());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kNotFound);
  EXPECT_EQ(planted_.get(kIndex), good_);
}

TEST(RebuildIndexOfNothing, Fails) {
  const Planted planted;
  std::filesystem::create_directories(planted.path());
  EXPECT_EQ(rebuild_index(planted.path()).error().code, Code::kUnknownFormat);
}

}  // namespace
}  // namespace shardwright
