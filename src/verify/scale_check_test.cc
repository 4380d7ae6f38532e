// SPDX-License-Identifier: Apache-2.0
// A scale that is no number makes no weights, wherever it is read.
#include "verify/scale_check.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

constexpr const char* kWeights = "model.safetensors";

// Puts bytes at an element of a tensor of the model's one file.
void overwrite(const Planted& planted, const std::string& name, std::size_t at,
               const std::string& bytes) {
  const std::string file = planted.get(kWeights);
  const std::size_t header = load_le<std::uint64_t>(as_bytes(file).data());
  const auto parsed = nlohmann::json::parse(file.substr(8, header));
  const auto begin = parsed.at(name).at("data_offsets").at(0).get<std::size_t>();
  std::string changed = file;
  changed.replace(8 + header + begin + at, bytes.size(), bytes);
  planted.put(kWeights, changed);
}

Result<PreparedConversion> to_megatron_of(const Planted& planted) {
  ConvertRequest request;
  request.input = planted.path();
  request.output = planted.place() / "out";
  request.format = "torch_dist";
  return convert_now(request);
}

std::string findings_of(const Planted& planted) {
  const auto report = verify_checkpoint(planted.path(), {});
  EXPECT_TRUE(report) << report.error().text();
  std::string text;
  for (const VerifyFinding& finding : report->findings) {
    EXPECT_EQ(finding.severity, Severity::kError);
    text += code_name(finding.code) + " " + finding.message + "\n";
  }
  return text;
}

void expect_told(const Planted& planted, const std::string& tensor, int number) {
  const auto what = HasSubstr(std::string(kWeights) + ": tensor " + tensor + ": scale number " +
                              std::to_string(number) + " is NaN, infinite");
  const auto refused = to_megatron_of(planted);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kPayloadDamaged);
  EXPECT_THAT(refused.error().message, what);
  EXPECT_FALSE(std::filesystem::exists(planted.place() / "out"));
  EXPECT_THAT(findings_of(planted), what);
}

// What transformers makes of such an exponent are infinities, and NaNs of zeros.
TEST(Scales, OfMxfp4AreNumbers) {
  const Planted planted;
  Planted::copy("hf/gpt_oss_mxfp4/hf", planted);
  EXPECT_EQ(findings_of(planted), "");
  const std::string scales = "model.layers.1.mlp.experts.down_proj_scales";
  overwrite(planted, scales, 5, "\xff");
  expect_told(planted, scales, 5);
}

TEST(Scales, OfBlocksAreNumbers) {
  const Planted planted;
  ConvertRequest request;
  request.input = golden_path("hf/llama3/hf");
  request.output = planted.path();
  request.format = "hf";
  request.quantise = WeightForm::kFp8Block;
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(findings_of(planted), "");
  const std::string scales = "model.layers.1.mlp.up_proj.weight_scale_inv";
  overwrite(planted, scales, 0, std::string("\0\0\xc0\x7f", 4));
  expect_told(planted, scales, 0);
  overwrite(planted, scales, 0, std::string("\0\0\x80\x7f", 4));  // infinite
  expect_told(planted, scales, 0);
}

// Of the same size as the numbers that belong there.
TEST(Biases, AreNoWholeNumbers) {
  const Planted planted;
  Planted::copy("hf/gpt_oss_mxfp4/hf", planted);
  const std::string bias = "model.layers.1.self_attn.q_proj.bias";
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    planted.edit_header(kWeights, [&](nlohmann::json& header) {
      header["model.layers.1.self_attn." + std::string(part) + ".bias"]["dtype"] = "I16";
    });
  }
  const auto what = HasSubstr("tensor " + bias + ": found dtype int16, expected floating-point");
  const auto refused = to_megatron_of(planted);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDtypeUnsupported);
  EXPECT_THAT(refused.error().message, what);
  EXPECT_THAT(findings_of(planted), what);
}

}  // namespace
}  // namespace shardwright
