// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>

#include "shardwright/checkpoint.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

/// A copy of a golden checkpoint in which a name stands for something that can't be read.
class UnreadableNames : public ::testing::Test {
 protected:
  void copy(const std::string& golden, const std::string& to = "ckpt") {
    fs::remove_all(place_ / "ckpt");
    fs::create_directories(fs::path(place_ / to).parent_path());
    fs::copy(golden_path(golden), place_ / to, fs::copy_options::recursive);
  }
  void replace_by_link(const std::string& name, const std::string& target) {
    fs::remove_all(place_ / ("ckpt/" + name));
    fs::create_directories(fs::path(place_ / ("ckpt/" + name)).parent_path());
    fs::create_symlink(target, place_ / ("ckpt/" + name));
  }
  // What opening says, and whether a collection knows it too.
  Code code_of_opening(const std::string& name) {
    const auto opened = open_checkpoint(place_ / "ckpt");
    if (opened) return Code{};
    EXPECT_NE(opened.error().message.find(name), std::string::npos) << opened.error().message;
    Defects all(Defects::Policy::kCollect);
    const auto collected = open_checkpoint(place_ / "ckpt", all);
    if (!collected) {
      EXPECT_EQ(collected.error().code, opened.error().code);
      return opened.error().code;
    }
    const bool is_found = std::ranges::any_of(
        all.found(), [&](const Error& error) { return error.code == opened.error().code; });
    EXPECT_TRUE(is_found) << name;
    return opened.error().code;
  }
  TemporaryFolder place_;
};

TEST_F(UnreadableNames, AreErrorsOfAHuggingFaceModel) {
  for (const char* name :
       {"tokenizer.json", "config.json", "notes.txt", "model.safetensors.index.json"}) {
    copy("hf/llama3/hf");
    ASSERT_TRUE(open_checkpoint(place_ / "ckpt"));
    replace_by_link(name, "gone");
    EXPECT_EQ(code_of_opening(name), Code::kNotAFile) << name;
    replace_by_link(name, "/etc/passwd");
    EXPECT_EQ(code_of_opening(name), Code::kPathEscapes) << name;
    fs::remove(place_ / (std::string("ckpt/") + name));
    ASSERT_EQ(::mkfifo((place_ / (std::string("ckpt/") + name)).c_str(), 0666), 0);
    EXPECT_EQ(code_of_opening(name), Code::kNotAFile) << name;
    replace_by_link(name, std::string(300, 'n'));
    EXPECT_EQ(code_of_opening(name), Code::kIo) << name;
  }
  copy("hf/llama3/hf");
  replace_by_link("runs", "/tmp");
  replace_by_link(".cache", "gone");
  EXPECT_EQ(code_of_opening(""), Code{}) << "folders and hidden names are no files of the model";
}

TEST_F(UnreadableNames, AreErrorsOfADcpDirectory) {
  for (const char* name : {".metadata", "common.pt", "metadata.json", "run_config.yaml",
                           "__0_0.distcp", "hf", "hf/config.json", "tokenizer/vocab.txt"}) {
    copy("mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero/iter_0000010");
    ASSERT_TRUE(open_checkpoint(place_ / "ckpt"));
    replace_by_link(name, "gone");
    EXPECT_EQ(code_of_opening(name), Code::kNotAFile) << name;
    replace_by_link(name, "/etc/passwd");
    EXPECT_EQ(code_of_opening(name), Code::kPathEscapes) << name;
  }
}

TEST_F(UnreadableNames, AreErrorsAmongRanks) {
  for (const char* name : {"mp_rank_01_001", "mp_rank_01_001/model_optim_rng.pt"}) {
    copy("hf/llama3/legacy_tp2pp2ep1/iter_0000001");
    ASSERT_TRUE(open_checkpoint(place_ / "ckpt"));
    replace_by_link(name, "gone");
    EXPECT_EQ(code_of_opening(name), Code::kNotAFile) << name;
  }
}

TEST_F(UnreadableNames, AreNotPassedOverForAnOlderIteration) {
  copy("mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero/iter_0000010", "ckpt/iter_0000001");
  ASSERT_TRUE(open_checkpoint(place_ / "ckpt"));
  replace_by_link("iter_0000002", "gone");
  EXPECT_EQ(code_of_opening("iter_0000002"), Code::kNotAFile);
  replace_by_link("iter_0000002", place_ / "ckpt");
  EXPECT_EQ(code_of_opening("iter_0000002"), Code::kPathEscapes);
  place_.put("ckpt/latest_checkpointed_iteration.txt", "2");
  EXPECT_EQ(code_of_opening("iter_0000002"), Code::kPathEscapes);
  replace_by_link("iter_0000002", "gone");
  EXPECT_EQ(code_of_opening("iter_0000002"), Code::kNotAFile);
}

TEST_F(UnreadableNames, OfFoldersThatMayHoldTheData) {
  copy("hf/llama3/hf", "ckpt/huggingface");
  replace_by_link("actor", "gone");
  EXPECT_TRUE(open_checkpoint(place_ / "ckpt")) << "another folder holds it";
  place_.put("ckpt/latest_checkpointed_iteration.txt", "2");
  fs::create_directories(place_ / "ckpt/iter_0000002");
  EXPECT_EQ(code_of_opening("iter_0000002"), Code::kTrackerBroken) << "it is empty";

  copy("hf/llama3/hf");
  replace_by_link("mp_rank_00", "gone");
  EXPECT_EQ(code_of_opening("mp_rank_00"), Code::kTwoCheckpoints) << "it may hold a model too";
}

}  // namespace
}  // namespace shardwright
