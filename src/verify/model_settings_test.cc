// SPDX-License-Identifier: Apache-2.0
#include "verify/model_settings.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "shardwright/verify.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"
#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kNote = "the models compute with other settings";

class ModelSettingsNote : public ::testing::Test {
 protected:
  ModelSettingsNote() {
    for (const char* side : {"left", "right"}) {
      std::filesystem::copy(golden_path("hf/llama3/hf"), place_ / side,
                            std::filesystem::copy_options::recursive);
    }
  }

  // The right one's config.json with another value.
  void say(const char* key, const nlohmann::json& value) {
    auto config = nlohmann::json::parse(read_golden("hf/llama3/hf/config.json"));
    config[key] = value;
    place_.put("right/config.json", config.dump());
  }

  [[nodiscard]] DiffReport diff(const std::string& left) const {
    auto report = diff_checkpoints(left, place_ / "right", {}, std::nullopt);
    EXPECT_TRUE(report) << report.error().text();
    return report ? *std::move(report) : DiffReport();
  }

  TemporaryFolder place_;
};

TEST_F(ModelSettingsNote, TellsWhatIsComputedWithDifferently) {
  EXPECT_THAT(diff(place_ / "left").notes, Not(Contains(HasSubstr(kNote))));
  say("rms_norm_eps", 0.5);
  const DiffReport report = diff(place_ / "left");
  EXPECT_TRUE(report.equal()) << "the tensors are";
  EXPECT_THAT(report.notes, Contains(HasSubstr("(left | right): layernorm_epsilon = ")));
  EXPECT_THAT(report.notes, Contains(HasSubstr(" | 0.5")));
}

TEST_F(ModelSettingsNote, HoldsARunsArgumentsAgainstAConfig) {
  const Planted run;
  Planted::convert("hf/llama3/hf", "torch_dist", {2, 1, 1, 1, 1}, run.path());
  EXPECT_THAT(diff(run.path()).notes, Not(Contains(HasSubstr(kNote))));
  say("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 77.0}});
  EXPECT_THAT(diff(run.path()).notes, Contains(HasSubstr("rotary_base = ")));
}

TEST_F(ModelSettingsNote, SaysNothingOfWhatOnlyTrainingReads) {
  say("initializer_range", 0.5);
  EXPECT_THAT(diff(place_ / "left").notes, Not(Contains(HasSubstr(kNote))));
}

}  // namespace
}  // namespace shardwright
