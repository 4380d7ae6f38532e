// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run.h"
#include "testing/golden_files.h"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using Words = std::vector<std::string>;

struct LocalityRun {
  int status = 0;
  std::string output;
  std::string messages;
};

LocalityRun locality_of(const std::string& path, Words flags) {
  Console::Capture capture;
  Console console(capture);
  Words words = {"locality", path};
  words.insert(words.end(), flags.begin(), flags.end());
  const int status = run_command_line(words, console);
  return {status, capture.output, capture.messages};
}

json report(const std::string& path, Words flags) {
  flags.emplace_back("--json");
  const LocalityRun ran = locality_of(path, flags);
  EXPECT_EQ(ran.status, kExitFine) << ran.messages;
  return json::parse(ran.output);
}

json counts(std::uint64_t opens, std::uint64_t foreign_opens, std::uint64_t foreign_bytes,
            std::uint64_t most, std::uint64_t least, std::uint64_t sent) {
  return {
      {"opens", opens},         {"foreign_opens", foreign_opens}, {"foreign_bytes", foreign_bytes},
      {"max_rank_bytes", most}, {"min_rank_bytes", least},        {"sent_bytes", sent}};
}

// Saved at TP2 DP2 by the code of Megatron-LM PR 3392, whose processes opened and read just this.
TEST(Locality, CountsWhatProcessesWereSeenToRead) {
  const json found = report(golden_path("replica/diverged"), {"--tp", "2", "--dp", "2"});
  EXPECT_EQ(found["schema"], "shardwright/locality/1");
  EXPECT_EQ(found["ranks"], 4);
  EXPECT_EQ(found["rules"]["per_name"], counts(10, 4, 168060, 204110, 34345, 379136));
  EXPECT_EQ(found["rules"]["stock"], counts(8, 0, 0, 120080, 118375, 379136));
  EXPECT_EQ(found["rules"]["per_chunk"], counts(8, 0, 0, 120080, 118375, 379136));
  EXPECT_EQ(found["metadata"]["opens"], (json{{"stock", 8}, {"per_name", 16}, {"per_chunk", 8}}));
  EXPECT_GT(found["metadata"]["bytes"], 0);
  EXPECT_GT(found["objects"]["opens"], 0);
  EXPECT_EQ(found["objects"]["foreign_opens"], 0) << "each rank saved the objects that it reads";
}

TEST(Locality, TheTableShowsTheSameCounts) {
  const LocalityRun ran = locality_of(golden_path("replica/diverged"), {"--tp", "2", "--dp", "2"});
  EXPECT_EQ(ran.status, kExitFine);
  EXPECT_THAT(ran.output, HasSubstr("4 ranks, 9 tensors\n"));
  EXPECT_THAT(ran.output, testing::ContainsRegex("per_name +10 +4 +168,060 +204,110 +34,345 "));
  EXPECT_THAT(ran.output, HasSubstr("opened by stock 8, per_name 16, per_chunk 8"));
  EXPECT_THAT(ran.output, HasSubstr("objects ("));
}

TEST(Locality, OptimizerStatesCountWhenTheyAreAskedFor) {
  const std::string path = golden_path("mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full");
  const Words layout = {"--pp", "2", "--ep", "2", "--dp", "2"};
  const json model = report(path, layout);
  Words with_states = layout;
  with_states.emplace_back("--optimizer");
  const json all = report(path, with_states);
  EXPECT_GT(all["tensors"], 3 * model["tensors"].get<int>());
  EXPECT_GT(all["rules"]["stock"]["max_rank_bytes"],
            3 * model["rules"]["stock"]["max_rank_bytes"].get<int>());
  EXPECT_THAT(model["notes"][0], HasSubstr("--optimizer counts them too"));
  EXPECT_EQ(all["rules"]["per_chunk"]["foreign_opens"], 0) << "at TP1 nothing is stored apart";
}

TEST(Locality, RefusesWhatItCannotCount) {
  const std::string path = golden_path("replica/sound");
  const auto refused = [](const LocalityRun& ran, const std::string& text) {
    EXPECT_EQ(ran.status, kExitFailure);
    EXPECT_THAT(ran.messages, HasSubstr(text));
  };
  refused(locality_of(golden_path("hf/llama3/hf"), {"--tp", "2"}),
          "found hf, expected torch_dist or dcp");
  refused(locality_of(path, {"--tp", "3"}), "SW0408");
  refused(locality_of(path, {"--pp", "8"}), "SW0407");
  refused(locality_of(path, {"--tp", "2", "--ep", "4"}),
          "2 ranks in a stage, expected a multiple of --ep 4");
  refused(locality_of(path, {"--dp", "0"}), "--dp: found '0'");
  refused(locality_of(path, {"--dp", "1048576", "--tp", "2"}), "expected at most 1048576 ranks");
  refused(locality_of("", {}), "give the path of a checkpoint");
  const LocalityRun none = locality_of(path, {"--tp", "2", "--optimizer"});
  EXPECT_EQ(none.status, kExitFine);
  EXPECT_THAT(none.messages, HasSubstr("the checkpoint has no optimizer states"));
}

}  // namespace
}  // namespace shardwright::cli
