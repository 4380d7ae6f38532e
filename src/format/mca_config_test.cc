// SPDX-License-Identifier: Apache-2.0
#include "format/mca_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// What mcore_adapter saves has no arguments of a run, but a config of the model in the run's
// folder.
TEST(McaConfig, HasTheModelsConfigAndWhatDescribesIt) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden_path("hf/llama3/legacy_tp2pp2ep1"), folder / "run",
                        std::filesystem::copy_options::recursive);
  const std::string config = read_golden("hf/llama3/hf/config.json");
  const auto open = [&] { return open_checkpoint(folder / "run").value(); };
  EXPECT_EQ(open().hf_config, "");

  folder.put("run/mca_config.json",
             nlohmann::json{{"hf_model_type", "llama"}, {"hf_config_json", config}}.dump());
  folder.put("run/tokenizer.json", "{}");
  folder.put("run/trainer_state.json", "{}");
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.hf_config, config);
  ASSERT_EQ(checkpoint.artifacts.size(), 1U);
  EXPECT_EQ(checkpoint.artifacts[0].first, "tokenizer.json");
  EXPECT_THAT(checkpoint.notes, Contains(HasSubstr("mca_config.json of mcore_adapter")));

  folder.put("run/iter_0000001/hf/config.json", R"({"model_type": "own"})");
  EXPECT_EQ(open().hf_config, R"({"model_type": "own"})");
}

TEST(McaConfig, WithoutAConfigSaysNothing) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden_path("hf/llama3/legacy_tp2pp2ep1"), folder / "run",
                        std::filesystem::copy_options::recursive);
  const auto is_told = Contains(HasSubstr("mca_config.json has no config.json that can be read"));
  for (const char* text : {"{}", R"({"hf_config_json": null})"}) {
    folder.put("run/mca_config.json", text);
    const Checkpoint checkpoint = open_checkpoint(folder / "run").value();
    EXPECT_EQ(checkpoint.hf_config, "") << text;
    EXPECT_THAT(checkpoint.notes, Not(is_told)) << text;
  }
  for (const char* text :
       {"{", "[]", R"({"hf_config_json": "x"})", R"({"hf_config_json": "[]"})"}) {
    folder.put("run/mca_config.json", text);
    const Checkpoint checkpoint = open_checkpoint(folder / "run").value();
    EXPECT_EQ(checkpoint.hf_config, "") << text;
    EXPECT_THAT(checkpoint.notes, is_told) << text;
  }
}

}  // namespace
}  // namespace shardwright
