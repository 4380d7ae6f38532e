// SPDX-License-Identifier: Apache-2.0
// Prediction layers that come from another checkpoint of the same model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "codec/json_text.h"
#include "convert/golden.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::Contains;
using testing::HasSubstr;

class PredictionSourceTest : public testing::Test {
 protected:
  ConvertRequest request(const std::string& input, const std::string& output,
                         std::string_view format) const {
    ConvertRequest request;
    request.input = input;
    request.output = out_ / output;
    request.format = format;
    return request;
  }
  ConvertRequest taking(const std::string& input, const std::string& output,
                        std::string_view format) const {
    ConvertRequest request = this->request(input, output, format);
    request.mtp = MtpPolicy::kKeep;
    request.mtp_from = golden_;
    return request;
  }
  // The model without its prediction layers: as Megatron's, and as Hugging Face's.
  void SetUp() override {
    ConvertRequest drop = request(golden_, "megatron", "torch_dist");
    drop.mtp = MtpPolicy::kDrop;
    ASSERT_TRUE(convert_now(drop));
    ASSERT_TRUE(convert_now(request(out_ / "megatron", "bare", "hf")));
    ASSERT_EQ(config(out_ / "bare")["num_nextn_predict_layers"], 0);
  }
  static nlohmann::json config(const std::string& folder) {
    return parse_json(read_file(folder + "/config.json"), "config.json").value();
  }
  void expect_whole(const std::string& name) const {
    EXPECT_EQ(difference(read_all_tensors(out_ / name).value(), read_all_tensors(golden_).value()),
              "");
    EXPECT_EQ(config(out_ / name)["num_nextn_predict_layers"], 1);
  }
  std::string refusal(const ConvertRequest& request) const {
    const auto prepared = prepare_conversion(request);
    EXPECT_FALSE(std::filesystem::exists(request.output));
    return prepared ? "accepted" : prepared.error().text();
  }

  const std::string golden_ = golden_path("hf/deepseek_v3_mtp/hf");
  TemporaryFolder out_;
};

TEST_F(PredictionSourceTest, CompletesAnExport) {
  const auto exported = convert_now(taking(out_ / "megatron", "hf", "hf"));
  ASSERT_TRUE(exported) << exported.error().text();
  expect_whole("hf");
  EXPECT_THAT(exported->notes,
              Contains(testing::AllOf(
                  HasSubstr("44 tensors of prediction layers are taken from " + golden_),
                  HasSubstr("model.layers.3.eh_proj.weight"),
                  HasSubstr("model.layers.3.shared_head.head.weight"))));
}

TEST_F(PredictionSourceTest, CompletesAnImport) {
  ASSERT_TRUE(convert_now(request(golden_, "expected", "torch_dist")));
  const auto imported = convert_now(taking(out_ / "bare", "full", "torch_dist"));
  ASSERT_TRUE(imported) << imported.error().text();
  EXPECT_EQ(difference(read_all_tensors(out_ / "full").value(),
                       read_all_tensors(out_ / "expected").value()),
            "");
  EXPECT_EQ(config(out_ / "full/iter_0000000/hf")["num_nextn_predict_layers"], 1);
  EXPECT_EQ(open_checkpoint(out_ / "full").value().arguments.at("mtp_num_layers"),
            ArgValue{std::int64_t{1}});
  ASSERT_TRUE(convert_now(request(out_ / "full", "back", "hf")));
  expect_whole("back");
}

TEST_F(PredictionSourceTest, CompletesAHuggingFaceModel) {
  ASSERT_TRUE(convert_now(taking(out_ / "bare", "hf", "hf")));
  expect_whole("hf");
  ConvertRequest wide = taking(out_ / "bare", "wide", "hf");
  wide.dtype = DType::kF32;
  ASSERT_TRUE(convert_now(wide));
  EXPECT_EQ(config(out_ / "wide")["num_nextn_predict_layers"], 1);
  EXPECT_EQ(config(out_ / "wide")["dtype"], "float32");
  EXPECT_EQ(read_all_tensors(out_ / "wide").value().at("model.layers.3.eh_proj.weight").dtype,
            DType::kF32);
}

// Training went on: the layers' second embedding is the model's, not that of the reference.
TEST_F(PredictionSourceTest, CopiesFollowTheModel) {
  const std::string embedding = "model.embed_tokens.weight";
  const Catalog catalog = open_checkpoint(out_ / "bare").value().catalog;
  const auto stored = std::ranges::find(
      catalog.tensors, embedding, [](const StoredTensor& tensor) { return tensor.desc.name; });
  std::fstream file(out_ / "bare/model.safetensors",
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(stored->chunks.range(0).offset));
  file.write("trained!", 8);
  file.close();
  ASSERT_TRUE(convert_now(request(out_ / "bare", "trained", "torch_dist")));
  ASSERT_TRUE(convert_now(taking(out_ / "trained", "hf", "hf")));
  const TensorMap hf = read_all_tensors(out_ / "hf").value();
  EXPECT_TRUE(hf.at(embedding).bytes.starts_with("trained!"));
  EXPECT_TRUE(hf.at("model.layers.3.embed_tokens.weight").bytes == hf.at(embedding).bytes);
}

TEST_F(PredictionSourceTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal(taking(golden_, "x", "torch_dist")),
              HasSubstr("the source has prediction layers of its own"));
  ASSERT_TRUE(convert_now(request(golden_, "whole", "torch_dist")));
  EXPECT_THAT(refusal(taking(out_ / "whole", "x", "hf")), HasSubstr("--mtp keep takes those"));
  EXPECT_THAT(refusal(taking(out_ / "megatron", "x", "torch_dist")),
              HasSubstr("those of Megatron"));
  EXPECT_THAT(refusal(taking(out_ / "bare", "x", "dcp")), HasSubstr("those of the source"));
  const auto from = [&](const std::string& folder) {
    ConvertRequest request = taking(out_ / "megatron", "x", "hf");
    request.mtp_from = folder;
    return refusal(request);
  };
  EXPECT_THAT(from(golden_path("hf/llama3/hf")),
              HasSubstr("found a llama, expected a deepseek_v3"));
  EXPECT_THAT(from(out_ / "bare"), HasSubstr("that model has no prediction layers"));
  EXPECT_THAT(from(out_ / "megatron"), HasSubstr("expected a Hugging Face model"));
  EXPECT_THAT(from("/nowhere"), HasSubstr("SW0101"));

  nlohmann::json other = config(golden_);
  other["q_lora_rank"] = other["q_lora_rank"].get<int>() * 2;
  const std::vector<TensorDesc> descs = descs_of(open_checkpoint(golden_).value().catalog);
  put_model(out_ / "other", other.dump(), descs);
  EXPECT_THAT(from(out_ / "other"), HasSubstr("expected"));
  EXPECT_THAT(from(out_ / "other"), HasSubstr("as in the source"));

  nlohmann::json fp8 = config(golden_);
  fp8["quantization_config"] = {
      {"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}};
  std::vector<TensorDesc> quantised = descs;
  for (TensorDesc& desc : quantised) {
    if (desc.name == "model.layers.3.eh_proj.weight") desc.dtype = DType::kF8E4M3;
  }
  quantised.push_back({"model.layers.3.eh_proj.weight_scale_inv", DType::kF32, {1, 1}});
  put_model(out_ / "fp8", fp8.dump(), quantised);
  EXPECT_THAT(from(out_ / "fp8"), HasSubstr("eh_proj.weight is quantised"));
}

}  // namespace
}  // namespace shardwright
