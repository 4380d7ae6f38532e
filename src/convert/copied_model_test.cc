// SPDX-License-Identifier: Apache-2.0
// A Hugging Face model that becomes one again has what its family needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "codec/safetensors_header.h"
#include "convert/golden.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kTensor = "model.layers.1.mlp.up_proj.weight";

// The golden model with other tensors.
template <class Edit>
std::string put_edited(const TemporaryFolder& folder, const std::string& name, Edit edit) {
  const std::string model = golden_path("hf/llama3/hf");
  std::vector<TensorDesc> tensors;
  const TensorMap stored = read_all_tensors(model).value();
  for (const auto& [tensor, bytes] : stored) {
    tensors.push_back({tensor, bytes.dtype, bytes.shape});
  }
  edit(tensors);
  put_model(folder / name, read_golden("hf/llama3/hf/config.json"), tensors);
  return folder / name;
}

ConvertRequest copy_of(const std::string& input, const std::string& output) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = "hf";
  return request;
}

bool is_tensor_of_copy(const TensorDesc& desc) { return desc.name == kTensor; }

std::string told_by(const PreparedConversion& done) {
  std::string text;
  for (const std::string& note : done.notes) text += note + "\n";
  return text;
}

TEST(CopiedModel, LacksNothing) {
  const TemporaryFolder folder;
  const std::string source = put_edited(folder, "source", [](std::vector<TensorDesc>& tensors) {
    std::erase_if(tensors, is_tensor_of_copy);
  });
  for (const WeightForm form : {WeightForm::kPlain, WeightForm::kFp8Block}) {
    ConvertRequest request = copy_of(source, folder / "out");
    request.quantise = form;
    const auto refused = convert_now(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUnmatchedTarget);
    EXPECT_THAT(refused.error().message, HasSubstr(kTensor));
    EXPECT_THAT(refused.error().message, HasSubstr("--accept-loss copies what is there"));
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
  ConvertRequest request = copy_of(source, folder / "out");
  request.accept_loss = true;
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(told_by(*done), HasSubstr(kTensor));
  // Who asks for a part gets it.
  request = copy_of(source, folder / "part");
  request.include = {"model.layers.0.*"};
  EXPECT_TRUE(convert_now(request));
}

TEST(CopiedModel, HasTheShapesOfItsConfig) {
  const TemporaryFolder folder;
  const std::string source = put_edited(folder, "source", [](std::vector<TensorDesc>& tensors) {
    std::ranges::find_if(tensors, is_tensor_of_copy)->shape = {48, 64};
  });
  const auto refused = convert_now(copy_of(source, folder / "out"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kShapeMismatch);
  EXPECT_THAT(refused.error().message, HasSubstr(kTensor));
}

// A misspelt name is one that is missing, too.
TEST(CopiedModel, MayHaveMore) {
  const TemporaryFolder folder;
  const std::string more = put_edited(folder, "more", [](std::vector<TensorDesc>& tensors) {
    tensors.push_back({"model.layers.1.mlp.other.weight", DType::kF32, {2}});
  });
  const auto done = convert_now(copy_of(more, folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(told_by(*done), HasSubstr("copied as it is: model.layers.1.mlp.other.weight"));
  EXPECT_EQ(difference(read_all_tensors(folder / "out").value(), read_all_tensors(more).value()),
            "");
  const std::string renamed = put_edited(folder, "renamed", [](std::vector<TensorDesc>& tensors) {
    std::ranges::find_if(tensors, is_tensor_of_copy)->name = "model.layers.1.mlp.up.weight";
  });
  const auto refused = convert_now(copy_of(renamed, folder / "no"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnmatchedTarget);
}

// Megatron has no place for what no rule is for, and verify says so too.
TEST(CopiedModel, OfMegatronHasNoMore) {
  const TemporaryFolder folder;
  const std::string more = put_edited(folder, "more", [](std::vector<TensorDesc>& tensors) {
    tensors.push_back({"model.layers.1.mlp.other.weight", DType::kBF16, {2}});
  });
  for (const char* format : {"torch_dist", "legacy"}) {
    ConvertRequest request = copy_of(more, folder / "out");
    request.format = format;
    const auto refused = convert_now(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kUnmatchedSource);
    EXPECT_THAT(refused.error().message, HasSubstr("rule: model.layers.1.mlp.other.weight"));
  }
}

// A loader that follows config.json would round all of them.
TEST(CopiedModel, OfAnotherDtypeThanItsConfigIsTold) {
  const TemporaryFolder folder;
  const std::string source = put_edited(folder, "f32", [](std::vector<TensorDesc>& tensors) {
    for (TensorDesc& tensor : tensors) tensor.dtype = DType::kF32;
  });
  const auto done = convert_now(copy_of(source, folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  const auto told = HasSubstr("config.json: found dtype bfloat16, expected that of some tensor");
  EXPECT_THAT(told_by(*done), told);
  EXPECT_THAT(told_by(*done), HasSubstr("; --dtype casts the tensors"));
  ConvertRequest request = copy_of(source, folder / "cast");
  request.dtype = DType::kF32;
  const auto cast = convert_now(request);
  ASSERT_TRUE(cast) << cast.error().text();
  EXPECT_THAT(told_by(*cast), Not(told));
}

// As bitsandbytes stores them, its config.json lost: what the integers stand for is in the scales.
TEST(CopiedModel, OfIntegersIsCopiedButNotCast) {
  const TemporaryFolder folder;
  const std::string source = put_edited(folder, "nf4", [](std::vector<TensorDesc>& tensors) {
    for (TensorDesc& tensor : tensors) {
      if (tensor.name.find("_proj") != std::string::npos) tensor.dtype = DType::kU8;
    }
    tensors.push_back({std::string(kTensor) + ".absmax", DType::kF32, {4}});
  });
  const auto done = convert_now(copy_of(source, folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(told_by(*done), HasSubstr("found dtype uint8"));
  ConvertRequest request = copy_of(source, folder / "cast");
  request.dtype = DType::kBF16;
  const auto refused = convert_now(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDtypeUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("; --dtype would cast the scales"));
  put_model(folder / "nobodys", R"({"architectures": ["NewForCausalLM"], "model_type": "new"})",
            {{"model.w.weight", DType::kU8, {4, 1}}, {"model.w.weight.absmax", DType::kF32, {4}}});
  request.input = folder / "nobodys";
  const auto unknown = convert_now(request);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kNoFamily);
  EXPECT_THAT(unknown.error().message, HasSubstr("; --dtype would cast the scales"));
}

TEST(CopiedModel, OfAnUnknownFamilyIsCopied) {
  const TemporaryFolder folder;
  put_model(folder / "source", R"({"architectures": ["NewForCausalLM"], "model_type": "new"})",
            {{"model.w", DType::kF32, {4}}});
  const auto done = convert_now(copy_of(folder / "source", folder / "out"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_THAT(told_by(*done), HasSubstr("not held against a family"));
  const auto sound = convert_now(copy_of(golden_path("hf/llama3/hf"), folder / "sound"));
  ASSERT_TRUE(sound);
  EXPECT_THAT(told_by(*sound), Not(HasSubstr("family")));
}

// Scales without values would be read by nobody.
TEST(CopiedModel, HasTheScalesOfItsValues) {
  const TemporaryFolder folder;
  ConvertRequest quantised = copy_of(golden_path("hf/llama3/hf"), folder / "fp8");
  quantised.quantise = WeightForm::kFp8Block;
  ASSERT_TRUE(convert_now(quantised));
  ASSERT_TRUE(convert_now(copy_of(folder / "fp8", folder / "again")));
  ConvertRequest part = copy_of(folder / "fp8", folder / "part");
  part.exclude = {std::string(kTensor)};
  const auto without = convert_now(part);
  ASSERT_TRUE(without) << without.error().text();
  const auto refused = convert_now(copy_of(folder / "part", folder / "out"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("up_proj"));
}

}  // namespace
}  // namespace shardwright
