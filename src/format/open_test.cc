// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "dcp/torch_items.h"
#include "io/source_files.h"
#include "shardwright/checkpoint.h"
#include "state/state_document.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kRun = "mcore/dense/v0.15.3/tp2pp1dp2-torch_dist-zero/iter_0000010";

// Each of N ranks opens the checkpoint, and reads few of its N files.
TEST(OpenCheckpoint, OpensNoPayloadFileBeforeItIsRead) {
  Checkpoint checkpoint = open_checkpoint(golden_path(kRun)).value();
  const auto distcp = [](const std::string& file) { return file.ends_with(".distcp"); };
  const auto payload_files = std::ranges::count_if(checkpoint.catalog.files, distcp);
  ASSERT_GT(payload_files, 1);
  EXPECT_EQ(checkpoint.files->opens(), 0u);
  Catalog one;
  one.files = checkpoint.catalog.files;
  const auto whole = std::ranges::find_if(
      checkpoint.catalog.tensors, [](const StoredTensor& each) { return each.chunks.size() == 1; });
  ASSERT_NE(whole, checkpoint.catalog.tensors.end());
  one.tensors.push_back(*whole);
  ASSERT_TRUE(locate_items(one, *checkpoint.files));
  EXPECT_EQ(checkpoint.files->opens(), 1u);
  ASSERT_TRUE(locate_items(checkpoint.catalog, *checkpoint.files));
  EXPECT_EQ(checkpoint.files->opens(), static_cast<std::uint64_t>(payload_files));
}

TEST(OpenCheckpoint, FindsFilesThatAreShortOrMissing) {
  const TemporaryFolder place;
  fs::copy(golden_path(kRun), place / "run", fs::copy_options::recursive);
  const fs::path file = place.path() / "run" / "__0_0.distcp";
  fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
  const auto size = fs::file_size(file);
  for (const std::uintmax_t cut : {size - 1, std::uintmax_t{0}}) {
    fs::resize_file(file, cut);
    const auto opened = open_checkpoint(place / "run");
    ASSERT_FALSE(opened) << cut;
    EXPECT_EQ(opened.error().code, Code::kShortRead);
    EXPECT_THAT(opened.error().message, HasSubstr("__0_0.distcp"));
  }
  Defects defects(Defects::Policy::kCollect);
  fs::remove(file);
  const auto opened = open_checkpoint(place / "run", defects);
  ASSERT_TRUE(opened) << opened.error().text();
  ASSERT_FALSE(defects.found().empty());
  EXPECT_EQ(defects.found().front().code, Code::kNotFound);
}

TEST(OpenCheckpoint, AsksForABackendThatIsKnown) {
  const TemporaryFolder place;
  fs::copy(golden_path("dcp/strided_rows7/ckpt"), place / "ckpt");
  ASSERT_TRUE(open_checkpoint(place / "ckpt"));
  for (const char* text :
       {"{}", "[]", R"({"sharded_backend": 3})", R"({"sharded_backend": "other"})"}) {
    place.put("ckpt/metadata.json", text);
    const auto opened = open_checkpoint(place / "ckpt");
    ASSERT_FALSE(opened) << text;
    EXPECT_EQ(opened.error().code, Code::kUnsupportedFormat) << text;
  }
}

// verl's runs keep no arguments, but a folder for Hugging Face beside the checkpoint.
TEST(OpenCheckpoint, TakesAConfigNearATorchDistCheckpointThatSaysNothing) {
  const TemporaryFolder folder;
  const fs::path actor = folder.path() / "global_step_7/actor";
  fs::create_directories(actor);
  fs::copy(golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full") + "/iter_0000010",
           actor / "dist_ckpt", fs::copy_options::recursive);
  folder.put("global_step_7/actor/huggingface/config.json", R"({"model_type": "llama"})");
  const std::string path = (actor / "dist_ckpt").string();
  EXPECT_EQ(open_checkpoint(path)->hf_config, "") << "its arguments say what it is";
  const std::string common = "global_step_7/actor/dist_ckpt/common.pt";
  StateDocument state = StateDocument::read(folder.get(common)).value();
  ASSERT_TRUE(state.document().erase(state.dict(), "args"));
  folder.put(common, state.encode().value());
  const Checkpoint opened = open_checkpoint(path).value();
  EXPECT_EQ(opened.hf_config, R"({"model_type": "llama"})");
  EXPECT_EQ(opened.location.iteration, 7);
  EXPECT_THAT(opened.notes, testing::Contains(HasSubstr("actor/huggingface")));
}

}  // namespace
}  // namespace shardwright
