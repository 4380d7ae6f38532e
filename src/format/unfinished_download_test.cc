// SPDX-License-Identifier: Apache-2.0
#include "format/unfinished_download.h"

#include <gmock/gmock.h>

#include <fstream>

#include "shardwright/checkpoint.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A Hugging Face model with one weight file of the given bytes.
void put_model(TemporaryFolder& folder, const std::string& weights) {
  folder.put("config.json", "{}");
  folder.put("model.safetensors", weights);
}

std::string weights() {
  const std::string header = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + "ab";
}

Error open_error(const TemporaryFolder& folder) {
  const auto opened = open_checkpoint(folder.path().string());
  EXPECT_FALSE(opened.has_value());
  return opened ? Error{} : opened.error();
}

std::vector<std::string> defects_of(const TemporaryFolder& folder) {
  Defects defects(Defects::Policy::kCollect);
  EXPECT_TRUE(open_checkpoint(folder.path().string(), defects).has_value());
  std::vector<std::string> messages;
  for (const Error& error : defects.found()) messages.push_back(error.message);
  return messages;
}

TEST(UnfinishedDownload, AFileOfFullSizeThatIsNotFilled) {
  TemporaryFolder folder;
  put_model(folder, weights());
  EXPECT_TRUE(open_checkpoint(folder.path().string()).has_value());
  folder.put("model.safetensors.aria2", "x");
  const Error error = open_error(folder);
  EXPECT_EQ(error.code, Code::kShortRead);
  EXPECT_THAT(error.message, HasSubstr("model.safetensors.aria2 says"));
}

TEST(UnfinishedDownload, AFileThatIsNotThereYet) {
  for (const char* name : {"b.safetensors.incomplete", "b.safetensors.part", "b.safetensors.aria2",
                           ".cache/huggingface/download/b.safetensors.0123abcd.incomplete"}) {
    TemporaryFolder folder;
    put_model(folder, weights());
    folder.put("model.safetensors.index.json",
               R"({"weight_map":{"w":"model.safetensors","v":"b.safetensors"}})");
    EXPECT_THAT(open_error(folder).message, Not(HasSubstr("download")));
    folder.put(name, "x");
    const Error error = open_error(folder);
    EXPECT_EQ(error.code, Code::kNotFound);
    EXPECT_THAT(error.message,
                AllOf(HasSubstr("b.safetensors"), HasSubstr(name), HasSubstr("did not end")));
  }
}

TEST(UnfinishedDownload, NothingElseIsThere) {
  TemporaryFolder folder;
  folder.put("config.json", "{}");
  folder.put("model.safetensors.incomplete", "x");
  const Error error = open_error(folder);
  EXPECT_EQ(error.code, Code::kUnknownFormat);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("model.safetensors.incomplete"), HasSubstr("download")));
}

// A file that cannot be read is the defect; what it would have held is not missing besides.
TEST(UnreadableFile, IsOneDefect) {
  for (const std::string& bytes : {weights().substr(0, 40), std::string(),
                                   std::string("version https://git-lfs.x/spec/v1\n")}) {
    TemporaryFolder folder;
    put_model(folder, weights());
    folder.put("b.safetensors", bytes);
    folder.put("model.safetensors.index.json",
               R"({"weight_map":{"w":"model.safetensors","v":"b.safetensors"}})");
    EXPECT_THAT(defects_of(folder), ElementsAre(HasSubstr("b.safetensors"))) << bytes;
    folder.put(
        "model.safetensors.index.json",
        R"({"weight_map":{"w":"model.safetensors","v":"b.safetensors","u":"model.safetensors"}})");
    EXPECT_THAT(defects_of(folder),
                ElementsAre(HasSubstr("b.safetensors"), HasSubstr("1 keys are not in the files")))
        << bytes;
  }
}

TEST(CarriedFile, IsNoStandIn) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.txt", "merges.txt"}) {
    TemporaryFolder folder;
    put_model(folder, weights());
    folder.put(name, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
    EXPECT_THAT(open_error(folder).message, AllOf(HasSubstr(name), HasSubstr("git lfs pull")));
    EXPECT_THAT(defects_of(folder), ElementsAre(HasSubstr(name)));
    folder.put(name, "<html>");
    EXPECT_THAT(open_error(folder).message, AllOf(HasSubstr(name), HasSubstr("web page")));
    folder.put(name, "{}");
    EXPECT_TRUE(open_checkpoint(folder.path().string()).has_value());
  }
  TemporaryFolder folder;
  put_model(folder, weights());
  folder.put("README.md", "<html>");
  folder.put("empty.txt", "");
  EXPECT_TRUE(open_checkpoint(folder.path().string()).has_value());
  folder.put("tokenizer.json", "");
  EXPECT_THAT(open_error(folder).message, HasSubstr("tokenizer.json: this file is empty"));
}

}  // namespace
}  // namespace shardwright
