// SPDX-License-Identifier: Apache-2.0
#include "format/weight_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A file with one tensor of two bytes.
std::string file_with(const std::string& tensor) {
  const std::string header =
      "{\"" + tensor + R"(":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + "ab";
}

class WeightFiles : public ::testing::Test {
 protected:
  // Each with a tensor of its own.
  void put(std::initializer_list<const char*> names) {
    for (const char* name : names) place_.put(name, file_with(name));
  }

  [[nodiscard]] Error refused() const {
    const auto opened = open_checkpoint(place_.path().string());
    EXPECT_FALSE(opened.has_value());
    return opened ? Error{} : opened.error();
  }

  [[nodiscard]] std::size_t tensors() const {
    const auto opened = open_checkpoint(place_.path().string());
    EXPECT_TRUE(opened.has_value()) << opened.error().text();
    return opened ? opened->catalog.tensors.size() : 0;
  }

  TemporaryFolder place_;
};

TEST_F(WeightFiles, OneOfSeveralIsMissing) {
  put({"model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"});
  const Error error = refused();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message,
              HasSubstr("model-00001-of-00003.safetensors: found 2 of the 3 files that its name "
                        "tells of; copy the missing ones too: model-00002-of-00003.safetensors"));
  place_.put("model-00002-of-00003.safetensors.part", "x");
  EXPECT_THAT(refused().message, HasSubstr("model-00002-of-00003.safetensors.part is its"));
  put({"model-00002-of-00003.safetensors"});
  EXPECT_EQ(tensors(), 3U);
}

TEST_F(WeightFiles, OtherStemsCountToo) {
  put({"model.safetensors", "tower.fp16-1-of-2.safetensors"});
  EXPECT_THAT(refused().message, HasSubstr("too: tower.fp16-2-of-2.safetensors"));
  put({"tower.fp16-2-of-2.safetensors"});
  EXPECT_EQ(tensors(), 3U);
}

TEST_F(WeightFiles, SomeCountFromZero) {
  put({"model-00000-of-00002.safetensors", "model-00001-of-00002.safetensors"});
  EXPECT_EQ(tensors(), 2U);
  put({"model-00002-of-00002.safetensors"});
  EXPECT_EQ(tensors(), 3U);
}

// Each rank of torch's HuggingFaceStorageWriter writes those files that it has a part of.
TEST_F(WeightFiles, RanksWriteTheSameNumbers) {
  put({"shard-00001-model-00001-of-00002.safetensors"});
  EXPECT_THAT(refused().message, HasSubstr("too: shard-*-model-00002-of-00002.safetensors"));
  put({"shard-00002-model-00002-of-00002.safetensors"});
  EXPECT_EQ(tensors(), 2U);
}

TEST_F(WeightFiles, FilesOfTwoSavesAreRefused) {
  put({"model-00001-of-00001.safetensors", "model-00001-of-00002.safetensors",
       "model-00002-of-00002.safetensors"});
  const Error counts = refused();
  EXPECT_EQ(counts.code, Code::kTwoCheckpoints);
  EXPECT_THAT(counts.message,
              HasSubstr("model-00001-of-00001.safetensors and model-00001-of-00002.safetensors"));
}

TEST_F(WeightFiles, AWholeModelBesideNumberedFilesIsRefused) {
  put({"model.safetensors", "model-00001-of-00001.safetensors"});
  const Error whole = refused();
  EXPECT_EQ(whole.code, Code::kTwoCheckpoints);
  EXPECT_THAT(whole.message, HasSubstr("model-00001-of-00001.safetensors and model.safetensors"));
}

TEST_F(WeightFiles, AcceleratesSecondModelIsNoPartOfTheFirst) {
  put({"model.safetensors", "model_1.safetensors"});
  const Error two = refused();
  EXPECT_EQ(two.code, Code::kTwoCheckpoints);
  EXPECT_THAT(two.message, HasSubstr("found model.safetensors and model_1.safetensors, which"));
  const auto alone = open_checkpoint(place_ / "model_1.safetensors");
  ASSERT_TRUE(alone) << alone.error().text();
  ASSERT_EQ(alone->catalog.tensors.size(), 1U);
  EXPECT_EQ(alone->catalog.tensors[0].desc.name, "model_1.safetensors");
}

// transformers leaves the one file of an earlier save where it is, and reads it before the index.
TEST_F(WeightFiles, AWholeModelBesideAnIndexedOneIsRefused) {
  put({"model.safetensors", "model-00001-of-00001.safetensors"});
  place_.put("model.safetensors.index.json", R"({"weight_map":{"model-00001-of-00001.safetensors":)"
                                             R"("model-00001-of-00001.safetensors"}})");
  const Error two = refused();
  EXPECT_EQ(two.code, Code::kTwoCheckpoints);
  EXPECT_THAT(two.message,
              HasSubstr("model.safetensors and model-00001-of-00001.safetensors, which "
                        "model.safetensors.index.json names: models of two saves"));
  EXPECT_TRUE(open_checkpoint(place_ / "model.safetensors"));
}

// It leaves the index of an earlier save too, and deletes that save's files.
TEST_F(WeightFiles, AnIndexThatNamesNothingIsPassedOverBesideAWholeModel) {
  const std::string index = R"({"weight_map":{"a":"model-00001-of-00001.safetensors"}})";
  put({"model.safetensors"});
  place_.put("model.safetensors.index.json", index);
  const auto opened = open_checkpoint(place_.path().string());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ(opened->catalog.files, std::vector<std::string>{"model.safetensors"});
  EXPECT_THAT(opened->notes, Contains(HasSubstr("index.json names files that are not there")));
  std::filesystem::remove(place_ / "model.safetensors");
  EXPECT_EQ(refused().code, Code::kNotFound);
}

TEST_F(WeightFiles, OtherFormsOfAWholeModelAreLeftOut) {
  put({"model.safetensors", "model.fp16.safetensors", "model.fp32-00001-of-00002.safetensors",
       "consolidated.safetensors", "tower.safetensors"});
  const auto opened = open_checkpoint(place_.path().string());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_THAT(opened->catalog.files, ElementsAre("model.safetensors", "tower.safetensors"));
  EXPECT_THAT(opened->notes, Contains("3 files beside the whole model are other forms of it and "
                                      "are left out: consolidated.safetensors, "
                                      "model.fp16.safetensors, "
                                      "model.fp32-00001-of-00002.safetensors"));
  std::filesystem::remove(place_ / "model.safetensors");
  put({"model.fp32-00002-of-00002.safetensors"});
  EXPECT_EQ(tensors(), 5U) << "nothing says which of them is meant";
}

TEST_F(WeightFiles, NumbersBehindOtherNamesArePartsOfTheModel) {
  put({"model.safetensors", "tower.safetensors", "tower_1.safetensors", "model_a.safetensors"});
  EXPECT_EQ(tensors(), 4U);
}

TEST_F(WeightFiles, WhateverANameCountsEndsSoon) {
  put({"model-7-of-9223372036854775807.safetensors"});
  EXPECT_THAT(refused().message, AllOf(HasSubstr("found 1 of the 9223372036854775807 files"),
                                       HasSubstr("too: model-1-of-")));
}

TEST_F(WeightFiles, NamesWithoutBothNumbersCountNothing) {
  put({"gptq_model-4bit-128g.safetensors", "a-1-of-.safetensors", "-of-3.safetensors",
       "c-of-3.safetensors", "1-of-1.safetensors", "e-1-of-0.safetensors"});
  EXPECT_EQ(tensors(), 6U);
}

TEST_F(WeightFiles, TheIndexChooses) {
  put({"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"});
  place_.put("model.safetensors.index.json", R"({"weight_map":{"model-00001-of-00003.safetensors":)"
                                             R"("model-00001-of-00003.safetensors"}})");
  EXPECT_EQ(tensors(), 1U);
  EXPECT_THAT(open_checkpoint(place_.path().string())->notes,
              Contains("model.safetensors.index.json: 1 files are not named by it and are left "
                       "out: model-00002-of-00003.safetensors"));
}

TEST_F(WeightFiles, OneThatIsGivenByItselfIsReadAndTold) {
  put({"model-00001-of-00003.safetensors", "model-00001-of-00001.safetensors"});
  EXPECT_THAT(open_checkpoint(place_ / "model-00001-of-00003.safetensors")->notes,
              Contains("model-00001-of-00003.safetensors is one of 3 files by its name; only this "
                       "one was given, the others are left out"));
  EXPECT_THAT(open_checkpoint(place_ / "model-00001-of-00001.safetensors")->notes, IsEmpty());
}

TEST_F(WeightFiles, OfTorchCountToo) {
  const std::string file = read_golden("torch_save/2.13.0/01_state_dict.pt");
  place_.put("pytorch_model-00001-of-00002.bin", file);
  EXPECT_EQ(refused().code, Code::kNotFound);
  EXPECT_THAT(refused().message, HasSubstr("too: pytorch_model-00002-of-00002.bin"));
  EXPECT_THAT(open_checkpoint(place_ / "pytorch_model-00001-of-00002.bin")->notes,
              Contains(HasSubstr("is one of 2 files by its name")));
  place_.put("pytorch_model.bin", file);
  EXPECT_EQ(refused().code, Code::kTwoCheckpoints);
  place_.put("pytorch_model.bin.index.json", R"({"weight_map":{"w":"pytorch_model.bin"}})");
  Defects defects(Defects::Policy::kCollect);
  EXPECT_THAT(open_checkpoint(place_.path().string(), defects)->notes,
              Contains("pytorch_model.bin.index.json: 1 files are not named by it and are left "
                       "out: pytorch_model-00001-of-00002.bin"));
}

}  // namespace
}  // namespace shardwright
