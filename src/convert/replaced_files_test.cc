// SPDX-License-Identifier: Apache-2.0
#include "convert/replaced_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplacedFiles : public ::testing::Test {
 protected:
  void copy(const std::string& golden, const std::string& to) {
    fs::create_directories(fs::path(place_ / to).parent_path());
    fs::copy(golden_path(golden), place_ / to, fs::copy_options::recursive);
    // Says where the golden files come from; no software writes it.
    std::vector<fs::path> notes;
    for (const auto& entry : fs::recursive_directory_iterator(place_ / to)) {
      if (entry.path().filename() == "provenance.txt") notes.push_back(entry.path());
    }
    for (const fs::path& note : notes) fs::remove(note);
  }
  ReplacedOutput find(const std::vector<std::string>& written = kModel) {
    auto found = find_replaced_files(place_ / "out", written);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : ReplacedOutput{};
  }
  std::string refusal(const std::vector<std::string>& written = kModel) {
    const auto found = find_replaced_files(place_ / "out", written);
    if (found) return "";
    EXPECT_EQ(found.error().code, Code::kTargetExists);
    return found.error().message;
  }
  static inline const std::vector<std::string> kModel = {"config.json", "model.safetensors"};
  static inline const std::vector<std::string> kRun = {
      "iter_0000010/__0_0.distcp", "iter_0000010/.metadata", "iter_0000010/common.pt",
      "latest_checkpointed_iteration.txt"};
  TemporaryFolder place_;
};

const std::string kTorchDist = "mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero";
const std::string kLegacy = "hf/llama3/legacy_tp2pp2ep1";

TEST_F(ReplacedFiles, AFolderThatIsWrittenIntoMayHoldWhatIsWrittenAgain) {
  copy("hf/llama3/hf", "out");
  place_.put("out/1_Pooling/config.json", "{}");
  std::vector<std::string> written = kModel;
  EXPECT_THAT(refusal(written), HasSubstr("would also remove 1_Pooling/,"));
  written.emplace_back("1_Pooling/config.json");
  EXPECT_THAT(refusal(written), IsEmpty());
  place_.put("out/1_Pooling/mine.txt", "x");
  EXPECT_THAT(refusal(written), HasSubstr("would also remove 1_Pooling/mine.txt,"));
}

TEST_F(ReplacedFiles, AreThoseOfOneCheckpointOfAnyFormat) {
  for (const std::string& golden :
       {std::string("hf/llama3/hf"), std::string("hf/gpt_oss/hf"), kTorchDist,
        kTorchDist + "/iter_0000010", kLegacy, kLegacy + "/iter_0000001",
        std::string("dcp/fsdp2_uneven/ckpt"), std::string("dcp/rank_local/ckpt")}) {
    fs::remove_all(place_ / "out");
    copy(golden, "out");
    const ReplacedOutput replaced = find();
    EXPECT_FALSE(replaced.keeps_others);
    EXPECT_FALSE(replaced.entries.empty()) << golden;
    for (const char* stranger : {"train.log", "tensorboard/events", ".git/HEAD", "train.py",
                                 "adapter_model.safetensors"}) {
      place_.put(std::string("out/") + stranger, "precious");
      EXPECT_THAT(refusal(),
                  HasSubstr(std::string(stranger).substr(0, std::string(stranger).find('/'))))
          << golden;
      fs::remove_all(place_ / "out/" +
                     std::string(stranger).substr(0, std::string(stranger).find('/')));
    }
    EXPECT_EQ(refusal(), "") << golden;
  }
}

TEST_F(ReplacedFiles, AreNothingOfAFolderWithoutACheckpoint) {
  fs::create_directory(place_ / "out");
  EXPECT_THAT(find().entries, IsEmpty());
  place_.put("out/notes.txt", "x");
  EXPECT_THAT(refusal(),
              HasSubstr("this is not a checkpoint, and --overwrite would remove notes.txt"));
  place_.put("out/config.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("notes.txt")) << "a config alone is none";
}

TEST_F(ReplacedFiles, MayBeWhatIsWrittenAnew) {
  copy("hf/llama3/hf", "out");
  place_.put("out/notes.txt", "carried from the source");
  EXPECT_THAT(refusal(), HasSubstr("notes.txt"));
  EXPECT_EQ(refusal({"config.json", "notes.txt", "model.safetensors"}), "");
}

TEST_F(ReplacedFiles, OfARunAreTheIterationAndTheTracker) {
  copy(kTorchDist, "out");
  copy(kTorchDist + "/iter_0000010", "out/iter_0000020");
  place_.put("out/train.log", "precious");
  place_.put("out/tensorboard/events", "precious");
  const ReplacedOutput replaced = find(kRun);
  EXPECT_TRUE(replaced.keeps_others);
  EXPECT_THAT(replaced.entries, ElementsAre("iter_0000010/", "latest_checkpointed_iteration.txt"));
  place_.put("out/iter_0000010/analysis/plot.png", "precious");
  EXPECT_THAT(refusal(kRun), HasSubstr("iter_0000010/analysis/"));
  fs::remove_all(place_ / "out/iter_0000010");
  EXPECT_THAT(find(kRun).entries, ElementsAre("latest_checkpointed_iteration.txt"));
  place_.put("out/iter_0000010", "a file");
  EXPECT_THAT(refusal(kRun), HasSubstr("iter_0000010"));
}

TEST_F(ReplacedFiles, AreNotSeveralIterationsAtOnce) {
  copy(kTorchDist, "out");
  EXPECT_EQ(refusal(), "");
  copy(kTorchDist + "/iter_0000010", "out/iter_0000020");
  EXPECT_THAT(refusal(), HasSubstr("iter_0000010/, iter_0000020/"));
}

TEST_F(ReplacedFiles, ReachIntoFoldersOfACheckpoint) {
  copy(kLegacy + "/iter_0000001", "out");
  place_.put("out/mp_rank_00_000/my_probe.pt", "precious");
  EXPECT_THAT(refusal(), HasSubstr("mp_rank_00_000/my_probe.pt"));
  fs::remove(place_ / "out/mp_rank_00_000/my_probe.pt");
  place_.put("out/hf/config.json", "{}");
  place_.put("out/tokenizer/tokenizer.json", "{}");
  EXPECT_EQ(refusal(), "");
  place_.put("out/hf/notes.txt", "precious");
  EXPECT_THAT(refusal(), HasSubstr("hf/notes.txt"));
}

}  // namespace
}  // namespace shardwright
