// SPDX-License-Identifier: Apache-2.0
#include "model/packed_tensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model/quantisation.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

// Stored tensors, and the numbers of those that are read.
struct Stored {
  std::vector<TensorDesc> descs;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> numbers;

  TensorDesc& at(std::string_view name) {
    return *std::ranges::find(descs, name, &TensorDesc::name);
  }
  void erase(std::string_view name) {
    std::erase_if(descs, [&](const TensorDesc& desc) { return desc.name == name; });
  }
};

Result<ModelTensors> join(const Stored& stored, std::string_view quantisation) {
  const QuantisationConfig config =
      read_quantisation_config(fmt::format(R"({{"quantization_config": {}}})", quantisation))
          .value();
  StoredContents contents;
  contents.file = [](std::uint32_t) { return "model.safetensors"; };
  contents.numbers = [&](std::uint32_t index) -> Result<std::vector<std::int64_t>> {
    return stored.numbers.at(stored.descs[index].name);
  };
  contents.is_zero = [&](std::uint32_t index) -> Result<bool> {
    const auto found = stored.numbers.find(stored.descs[index].name);
    return found != stored.numbers.end() &&
           std::ranges::all_of(found->second, [](std::int64_t number) { return number == 0; });
  };
  return join_scales(stored.descs, config, &contents);
}

void expect_refused(const Stored& stored, std::string_view config, Code code,
                    const std::vector<std::string>& parts) {
  const Result<ModelTensors> model = join(stored, config);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, code) << model.error().message;
  for (const std::string& part : parts) EXPECT_THAT(model.error().message, HasSubstr(part));
}

std::string compressed(std::string_view weights, std::string_view format = "pack-quantized") {
  return fmt::format(
      R"({{"quant_method": "compressed-tensors", "format": "{}",
          "config_groups": {{"g": {{"weights": {}}}}}}})",
      format, weights);
}

const std::string kInt4 =
    compressed(R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32})");
const std::string kAsymmetric = compressed(
    R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": false})");
const std::string kOrdered = compressed(
    R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
        "actorder": "group"})");
const std::string kChannel8 =
    compressed(R"({"num_bits": 8, "type": "int", "strategy": "channel"})");

// [12, 96] integers of four bits in groups of 32.
Stored int4() {
  return {{{"a.weight_packed", DType::kI32, {12, 12}},
           {"a.weight_scale", DType::kBF16, {12, 3}},
           {"a.weight_shape", DType::kI64, {2}},
           {"a.bias", DType::kBF16, {12}}},
          {{"a.weight_shape", {12, 96}}}};
}

TEST(JoinPacked, TakesSymmetricGroups) {
  const ModelTensors model = join(int4(), kInt4).value();
  ASSERT_EQ(model.tensors.size(), 2U);
  EXPECT_EQ(model.tensors[0].name, "a.weight");
  EXPECT_EQ(model.tensors[0].dtype, DType::kBF16);
  EXPECT_EQ(model.tensors[0].shape, (Dims{12, 96}));
  EXPECT_EQ(model.tensors[1].name, "a.bias");
  const QuantisedTensor& joined = model.quantised.at(0);
  EXPECT_EQ(joined.bits, 4);
  EXPECT_EQ(joined.zero, 8);
  EXPECT_FALSE(joined.zeros);
  EXPECT_EQ(joined.block, (Dims{1, 32}));
  EXPECT_EQ(joined.stride, (Dims{3, 1}));
  EXPECT_EQ(joined.strides, (Dims{96, 1}));
  EXPECT_EQ(joined.words.axis, -1);
  EXPECT_EQ(joined.scheme, "int4");
  EXPECT_EQ(joined.more, (std::vector<std::uint32_t>{2}));
}

TEST(JoinPacked, TakesRowsOfWhichAWordIsPartlyFilled) {
  Stored stored = int4();
  stored.at("a.weight_packed").shape = {12, 25};
  stored.at("a.weight_scale").shape = {12, 1};
  stored.numbers["a.weight_shape"] = {12, 98};
  const ModelTensors model = join(stored, kChannel8).value();
  EXPECT_EQ(model.tensors[0].shape, (Dims{12, 98}));
  EXPECT_EQ(model.quantised[0].strides, (Dims{100, 1}));
  EXPECT_EQ(model.quantised[0].zero, 128);
  EXPECT_EQ(model.quantised[0].block, (Dims{1, 98}));
  stored.at("a.weight_scale").shape = {12};
  EXPECT_TRUE(join(stored, kChannel8));
  stored.at("a.weight_scale").shape = {1};
  const std::string tensor = compressed(R"({"num_bits": 8, "type": "int", "strategy": "tensor"})");
  EXPECT_EQ(join(stored, tensor).value().quantised[0].block, (Dims{12, 98}));
}

TEST(JoinPacked, TakesPackedZeros) {
  Stored stored = int4();
  stored.descs.push_back({"a.weight_zero_point", DType::kI32, {2, 3}});
  const ModelTensors model = join(stored, kAsymmetric).value();
  const QuantisedTensor& joined = model.quantised[0];
  ASSERT_TRUE(joined.zeros);
  EXPECT_EQ(joined.zeros->block, (Dims{8, 32}));
  EXPECT_EQ(joined.zeros->stride, (Dims{24, 8}));
  EXPECT_EQ(joined.zeros->words.axis, 0);
  EXPECT_EQ(joined.zeros->added, 0U);
  EXPECT_EQ(joined.zero, 0);
  expect_refused(stored, kInt4, Code::kUnmatchedSource,
                 {"model.safetensors: tensor a.weight_zero_point", "symmetric"});
  stored.at("a.weight_zero_point").shape = {12, 3};
  expect_refused(stored, kAsymmetric, Code::kShapeMismatch, {"(12, 3)", "(2, 3)"});
  stored.erase("a.weight_zero_point");
  expect_refused(stored, kAsymmetric, Code::kUnmatchedSource,
                 {"model.safetensors: tensor a.weight_packed", "a.weight_zero_point"});
}

TEST(JoinPacked, ReadsTheOrderOfColumns) {
  Stored stored = int4();
  stored.descs.push_back({"a.weight_g_idx", DType::kI32, {96}});
  std::vector<std::int64_t>& order = stored.numbers["a.weight_g_idx"];
  order.assign(96, -1);
  EXPECT_FALSE(join(stored, kInt4).value().quantised[0].groups);
  for (std::size_t i = 0; i < 96; ++i) order[i] = static_cast<std::int64_t>(i / 32);
  EXPECT_FALSE(join(stored, kOrdered).value().quantised[0].groups);
  for (std::size_t i = 0; i < 96; ++i) order[i] = static_cast<std::int64_t>(i % 3);
  const ModelTensors model = join(stored, kOrdered).value();
  ASSERT_TRUE(model.quantised[0].groups);
  EXPECT_EQ(model.quantised[0].groups->axis, 1);
  EXPECT_EQ(model.quantised[0].groups->tensor, 4U);
  EXPECT_EQ(model.quantised[0].more, (std::vector<std::uint32_t>{2}));
  order[5] = 3;
  expect_refused(stored, kOrdered, Code::kOutOfBounds,
                 {"a.weight_g_idx", "group 3 for column 5", "0 to 2"});
  order[5] = -1;
  expect_refused(stored, kOrdered, Code::kOutOfBounds, {"group -1 for column 5"});
  order[5] = 0;  // which has 33 columns now
  expect_refused(stored, kOrdered, Code::kShapeMismatch, {"33 columns in group 0"});
  stored.at("a.weight_g_idx").shape = {95};
  expect_refused(stored, kOrdered, Code::kShapeMismatch, {"(95,)", "(96,)"});
  stored.erase("a.weight_g_idx");
  expect_refused(stored, kOrdered, Code::kUnmatchedSource, {"a.weight_g_idx"});
}

TEST(JoinPacked, RefusesShapesThatContradict) {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{
           {12, 97},
           {12, 88},
           {11, 96},
           {-12, 96},
           {12, -96},
           {96, 12},
           {12, std::int64_t{1} << 62},
           {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}}) {
    Stored stored = int4();
    stored.numbers["a.weight_shape"] = shape;
    expect_refused(stored, kInt4, Code::kShapeMismatch,
                   {"model.safetensors: tensor a.weight_shape", "a.weight_packed (12, 12)"});
  }
  Stored stored = int4();
  stored.numbers["a.weight_shape"] = {12, 90};
  expect_refused(stored, kInt4, Code::kShapeMismatch, {"multiple of group_size 32"});
  stored = int4();
  stored.at("a.weight_shape").shape = {3};
  expect_refused(stored, kInt4, Code::kShapeMismatch, {"(3,)", "two whole numbers"});
  stored = int4();
  stored.at("a.weight_scale").shape = {12, 6};
  expect_refused(stored, kInt4, Code::kShapeMismatch, {"a.weight_scale", "(12, 6)", "(12, 3)"});
  stored = int4();
  stored.at("a.weight_scale").dtype = DType::kI8;
  expect_refused(stored, kInt4, Code::kDtypeUnsupported, {"a.weight_scale", "int8"});
  stored = int4();
  stored.at("a.weight_packed").shape = {2, 6, 12};
  expect_refused(stored, kInt4, Code::kShapeMismatch, {"a.weight_packed", "(2, 6, 12)"});
  stored = int4();
  stored.at("a.weight_packed").shape = {12, std::int64_t{1} << 60};
  expect_refused(stored, kInt4, Code::kLimit, {"a.weight_packed"});
}

TEST(JoinPacked, RefusesWhatIsMissing) {
  for (const std::string name : {"a.weight_scale", "a.weight_shape"}) {
    Stored stored = int4();
    stored.erase(name);
    expect_refused(stored, kInt4, Code::kUnmatchedSource,
                   {"model.safetensors: tensor a.weight_packed", name});
  }
  Stored stored = int4();
  stored.erase("a.weight_packed");
  expect_refused(stored, kInt4, Code::kUnmatchedSource, {"a.weight_"});
  stored = int4();
  stored.descs.push_back({"a.weight", DType::kBF16, {12, 96}});
  expect_refused(stored, kInt4, Code::kDuplicateName, {"a.weight too"});
  stored = int4();
  expect_refused(stored, "null", Code::kConfigMissing, {"a.weight_packed", "--hf-config"});
  stored.descs.push_back({"b.weight", DType::kI8, {4, 4}});
  expect_refused(stored, kInt4, Code::kDtypeUnsupported, {"b.weight", "int8"});
}

TEST(JoinPacked, ChoosesTheOneSchemeThatFits) {
  const std::string two = R"({"quant_method": "compressed-tensors", "format": "mixed-precision",
      "config_groups": {
        "a": {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}},
        "b": {"weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}}})";
  EXPECT_EQ(join(int4(), two).value().quantised[0].bits, 4);
  Stored stored = int4();
  stored.numbers["a.weight_shape"] = {12, 48};
  stored.at("a.weight_scale").shape = {12, 1};
  EXPECT_EQ(join(stored, two).value().quantised[0].bits, 8);
  const std::string same = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {
        "a": {"weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 96}},
        "b": {"weights": {"num_bits": 4, "type": "int", "strategy": "channel"}}}})";
  stored = int4();
  stored.at("a.weight_scale").shape = {12, 1};
  expect_refused(stored, same, Code::kShapeMismatch, {"a.weight_packed", "several"});
}

const std::string kNvfp4 =
    compressed(R"({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16})",
               "nvfp4-pack-quantized");
const std::string kMxfp4 =
    compressed(R"({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32})",
               "mxfp4-pack-quantized");
constexpr std::string_view kModelOpt = R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})";

TEST(JoinPacked, DividesByTheGlobalScaleOfCompressedTensors) {
  Stored stored{{{"a.weight_packed", DType::kU8, {12, 32}},
                 {"a.weight_scale", DType::kF8E4M3, {12, 4}},
                 {"a.weight_global_scale", DType::kF32, {1}},
                 {"a.input_global_scale", DType::kF32, {1}}},
                {}};
  const ModelTensors model = join(stored, kNvfp4).value();
  ASSERT_EQ(model.tensors.size(), 1U);
  EXPECT_EQ(model.tensors[0].shape, (Dims{12, 64}));
  EXPECT_EQ(model.ignored, (std::vector<std::string>{"a.input_global_scale"}));
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.dtype, DType::kF4E2M1X2);
  EXPECT_EQ(joined.block, (Dims{1, 16}));
  EXPECT_EQ(joined.stride, (Dims{4, 1}));
  ASSERT_TRUE(joined.second);
  EXPECT_TRUE(joined.second->divides);
  stored.at("a.weight_global_scale").shape = {2};
  expect_refused(stored, kNvfp4, Code::kShapeMismatch, {"a.weight_global_scale", "(2,)"});
  stored.erase("a.weight_global_scale");
  expect_refused(stored, kNvfp4, Code::kUnmatchedSource, {"a.weight_global_scale"});
  stored.erase("a.weight_packed");
  expect_refused(stored, kNvfp4, Code::kUnmatchedSource, {"a.weight_scale", "without values"});
}

TEST(JoinPacked, MultipliesWithTheSecondScaleOfModelOpt) {
  Stored stored{{{"a.weight", DType::kU8, {12, 32}},
                 {"a.weight_scale", DType::kF8E4M3, {12, 4}},
                 {"a.weight_scale_2", DType::kF32, {}},
                 {"a.input_scale", DType::kF32, {}}},
                {}};
  const ModelTensors model = join(stored, kModelOpt).value();
  EXPECT_EQ(model.tensors[0].name, "a.weight");
  EXPECT_EQ(model.tensors[0].shape, (Dims{12, 64}));
  ASSERT_TRUE(model.quantised[0].second);
  EXPECT_FALSE(model.quantised[0].second->divides);
  stored.at("a.weight_scale").shape = {12, 2};
  expect_refused(stored, kModelOpt, Code::kShapeMismatch, {"a.weight_scale", "(12, 2)", "(12, 4)"});
  stored.at("a.weight_scale").shape = {12, 4};
  stored.descs.push_back({"a.pre_quant_scale", DType::kBF16, {64}});
  expect_refused(stored, kModelOpt, Code::kUnmatchedSource, {"a.pre_quant_scale"});
}

// Llama 4's and GPT-OSS's: bytes of two neighbours along the inputs, which are not the last axis.
TEST(JoinPacked, TakesParametersOfExpertsOfModelOpt) {
  const std::string experts = "model.layers.0.mlp.experts.down_proj";
  Stored stored{{{experts, DType::kU8, {2, 16, 24}},
                 {experts + "_weight_scale", DType::kF8E4M3, {2, 2, 24}},
                 {experts + "_weight_scale_2", DType::kF32, {}},
                 {experts + "_input_scale", DType::kF32, {}}},
                {}};
  const ModelTensors model = join(stored, kModelOpt).value();
  ASSERT_EQ(model.tensors.size(), 1U);
  EXPECT_EQ(model.tensors[0].name, experts);
  EXPECT_EQ(model.tensors[0].shape, (Dims{2, 32, 24}));
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.words.axis, 1);
  EXPECT_EQ(joined.strides, (Dims{768, 48, 2}));
  EXPECT_EQ(joined.block, (Dims{1, 16, 1}));
  EXPECT_EQ(joined.stride, (Dims{48, 24, 1}));
  ASSERT_TRUE(joined.second);
  EXPECT_FALSE(joined.second->divides);
  stored.at(experts + "_weight_scale_2").shape = {2};
  expect_refused(stored, kModelOpt, Code::kShapeMismatch, {"down_proj_weight_scale_2", "(2,)"});
  stored.at(experts + "_weight_scale").shape = {2, 24, 2};
  expect_refused(stored, kModelOpt, Code::kShapeMismatch,
                 {"down_proj_weight_scale", "(2, 24, 2)", "(2, 2, 24)"});
  stored.erase(experts + "_weight_scale");
  expect_refused(stored, kModelOpt, Code::kUnmatchedSource, {"without", "down_proj_weight_scale"});
  stored.erase(experts);
  expect_refused(stored, kModelOpt, Code::kUnmatchedSource, {"down_proj_weight_scale_2"});
}

TEST(JoinPacked, TakesExponentsOfCompressedTensors) {
  Stored stored{
      {{"a.weight_packed", DType::kU8, {12, 32}}, {"a.weight_scale", DType::kU8, {12, 2}}}, {}};
  const ModelTensors model = join(stored, kMxfp4).value();
  EXPECT_EQ(model.quantised[0].scale_dtype, DType::kF8E8M0);
  EXPECT_EQ(model.quantised[0].block, (Dims{1, 32}));
  EXPECT_FALSE(model.quantised[0].second);
  expect_refused(stored, kNvfp4, Code::kDtypeUnsupported, {"a.weight_scale", "uint8"});
  stored.at("a.weight_packed").shape = {12, 24};
  expect_refused(stored, kMxfp4, Code::kShapeMismatch, {"48 columns", "32"});
}

constexpr std::string_view kV4 = R"({"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0",
                                     "weight_block_size": [128, 128]})";

TEST(JoinPacked, TakesTheScalesOfDeepSeekV4) {
  Stored stored{{{"e.w1.weight", DType::kI8, {256, 64}},
                 {"e.w1.scale", DType::kF8E8M0, {256, 4}},
                 {"wq.weight", DType::kF8E4M3, {256, 130}},
                 {"wq.scale", DType::kF8E8M0, {2, 2}}},
                {}};
  const ModelTensors model = join(stored, kV4).value();
  ASSERT_EQ(model.tensors.size(), 2U);
  EXPECT_EQ(model.tensors[0].name, "e.w1.weight");
  EXPECT_EQ(model.tensors[0].shape, (Dims{256, 128}));
  EXPECT_EQ(model.tensors[1].shape, (Dims{256, 130}));
  ASSERT_EQ(model.quantised.size(), 2U);
  EXPECT_EQ(model.quantised[0].block, (Dims{1, 32}));
  EXPECT_EQ(model.quantised[1].block, (Dims{128, 128}));
  stored.at("e.w1.scale").shape = {2, 1};
  expect_refused(stored, kV4, Code::kShapeMismatch, {"e.w1.scale", "(2, 1)", "(256, 4)"});
  stored.erase("e.w1.weight");
  expect_refused(stored, kV4, Code::kUnmatchedSource, {"e.w1.scale", "e.w1.weight"});
}

std::string gptq(std::string_view more = "", std::int64_t bits = 4) {
  return fmt::format(R"({{"quant_method": "gptq", "bits": {}, "group_size": 32{}}})", bits, more);
}

// A linear layer of 64 columns and 24 rows.
Stored gptq_tensors() {
  Stored stored{{{"a.qweight", DType::kI32, {8, 24}},
                 {"a.qzeros", DType::kI32, {2, 3}},
                 {"a.scales", DType::kF16, {2, 24}},
                 {"a.g_idx", DType::kI32, {64}}},
                {}};
  for (std::int64_t i = 0; i < 64; ++i) stored.numbers["a.g_idx"].push_back(i / 32);
  return stored;
}

// Their writers give each linear one. That of a model is not zero in all layers.
TEST(JoinPacked, LeavesOutBiasesOfGptqThatAreZeroInAllLayers) {
  Stored stored;
  for (const std::string layer : {"l.0.", "l.1."}) {
    for (const TensorDesc& part : gptq_tensors().descs) {
      for (const std::string module : {"q", "o"}) {
        stored.descs.push_back({layer + module + part.name.substr(1), part.dtype, part.shape});
      }
    }
    for (const std::string module : {"q", "o"}) {
      stored.numbers[layer + module + ".g_idx"] = gptq_tensors().numbers["a.g_idx"];
      stored.descs.push_back({layer + module + ".bias", DType::kF16, {24}});
      stored.numbers[layer + module + ".bias"] = {0};
    }
  }
  stored.descs.push_back({"l.0.norm.bias", DType::kF16, {24}});
  stored.numbers["l.0.norm.bias"] = {0};
  stored.numbers["l.1.q.bias"] = {0, 1};
  const ModelTensors model = join(stored, gptq()).value();
  EXPECT_EQ(model.zero_biases, (std::vector<std::string>{"l.0.o.bias", "l.1.o.bias"}));
  EXPECT_EQ(model.tensors.size(), 4U + 3U);
  EXPECT_THAT(model.ignored, testing::IsEmpty());
}

TEST(JoinPacked, TurnsGptqAround) {
  Stored stored = gptq_tensors();
  const ModelTensors model = join(stored, gptq()).value();
  ASSERT_EQ(model.tensors.size(), 1U);
  EXPECT_EQ(model.tensors[0].name, "a.weight");
  EXPECT_EQ(model.tensors[0].shape, (Dims{24, 64}));
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.words.axis, 1);
  EXPECT_EQ(joined.strides, (Dims{8, 192}));
  EXPECT_EQ(joined.block, (Dims{1, 32}));
  EXPECT_EQ(joined.stride, (Dims{1, 24}));
  ASSERT_TRUE(joined.zeros);
  EXPECT_EQ(joined.zeros->added, 0x11111111U);
  EXPECT_EQ(joined.zeros->block, (Dims{8, 32}));
  EXPECT_EQ(joined.zeros->stride, (Dims{8, 24}));
  EXPECT_FALSE(joined.groups);
  EXPECT_EQ(
      join(stored, gptq(R"(, "checkpoint_format": "gptq_v2")")).value().quantised[0].zeros->added,
      0U);
  std::swap(stored.numbers["a.g_idx"][0], stored.numbers["a.g_idx"][63]);
  EXPECT_TRUE(join(stored, gptq()).value().quantised[0].groups);
  stored.numbers["a.g_idx"][0] = 2;
  expect_refused(stored, gptq(), Code::kOutOfBounds, {"a.g_idx", "group 2 for column 0"});
  stored.erase("a.g_idx");
  EXPECT_FALSE(join(stored, gptq()).value().quantised[0].groups);
  expect_refused(stored, gptq(R"(, "desc_act": true)"), Code::kUnmatchedSource, {"a.g_idx"});
}

TEST(JoinPacked, RefusesGptqThatContradicts) {
  Stored stored = gptq_tensors();
  expect_refused(stored, gptq("", 8), Code::kShapeMismatch, {"a.scales", "(2, 24)", "(1, 24)"});
  expect_refused(stored, gptq("", 3), Code::kDtypeUnsupported, {"gptq", "3 bits"});
  expect_refused(stored, gptq(R"(, "checkpoint_format": "marlin")"), Code::kDtypeUnsupported,
                 {"marlin"});
  stored.at("a.qzeros").shape = {2, 24};
  expect_refused(stored, gptq(), Code::kShapeMismatch, {"a.qzeros", "(2, 24)", "(2, 3)"});
  for (const std::string name : {"a.qzeros", "a.scales"}) {
    stored = gptq_tensors();
    stored.erase(name);
    expect_refused(stored, gptq(), Code::kUnmatchedSource, {"a.qweight", name});
  }
  stored = gptq_tensors();
  stored.erase("a.qweight");
  expect_refused(stored, gptq(), Code::kUnmatchedSource, {"a.qzeros"});
  stored = gptq_tensors();
  stored.at("a.g_idx").shape = {63};
  expect_refused(stored, gptq(), Code::kShapeMismatch, {"a.g_idx", "(63,)", "(64,)"});
}

TEST(JoinPacked, FollowsGptqModulesThatDiffer) {
  Stored stored = gptq_tensors();
  stored.at("a.qweight").shape = {16, 24};
  stored.at("a.qzeros").shape = {2, 6};
  const ModelTensors model =
      join(stored, gptq(R"(, "dynamic": {"+:.*down.*": {"bits": 8}})")).value();
  EXPECT_EQ(model.quantised[0].bits, 8);
  EXPECT_EQ(model.tensors[0].shape, (Dims{24, 64}));
  expect_refused(stored, gptq(), Code::kShapeMismatch, {"a."});
}

// 80 columns in groups of 32: the last one has 16.
TEST(JoinPacked, LeavesTheLastGroupOfGptqShort) {
  Stored stored = gptq_tensors();
  stored.at("a.qweight").shape = {10, 24};
  stored.at("a.qzeros").shape = {3, 3};
  stored.at("a.scales").shape = {3, 24};
  stored.at("a.g_idx").shape = {80};
  stored.numbers["a.g_idx"].insert(stored.numbers["a.g_idx"].end(), 16, 2);
  for (const std::string_view rules :
       {R"(, "dynamic": {"-:.*gate.*": {}})", R"(, "dynamic": {"+:.*down.*": {"bits": 8}})", ""}) {
    SCOPED_TRACE(rules);
    const ModelTensors model = join(stored, gptq(rules)).value();
    EXPECT_EQ(model.tensors[0].shape, (Dims{24, 80}));
    EXPECT_EQ(model.quantised[0].block, (Dims{1, 32}));
  }
  stored.at("a.scales").shape = {4, 24};
  stored.at("a.qzeros").shape = {4, 3};
  expect_refused(stored, gptq(R"(, "dynamic": {"-:.*gate.*": {}})"), Code::kShapeMismatch,
                 {"a.scales"});
}

TEST(JoinPacked, InterleavesAwq) {
  constexpr std::string_view kAwq =
      R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"})";
  Stored stored{{{"a.qweight", DType::kI32, {64, 3}},
                 {"a.qzeros", DType::kI32, {2, 3}},
                 {"a.scales", DType::kF16, {2, 24}}},
                {}};
  const ModelTensors model = join(stored, kAwq).value();
  EXPECT_EQ(model.tensors[0].shape, (Dims{24, 64}));
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.words.axis, 0);
  EXPECT_TRUE(joined.words.is_interleaved);
  EXPECT_EQ(joined.strides, (Dims{8, 24}));
  EXPECT_TRUE(joined.zeros->words.is_interleaved);
  EXPECT_EQ(joined.zeros->added, 0U);
  stored.at("a.qweight").shape = {60, 3};
  expect_refused(stored, kAwq, Code::kShapeMismatch, {"a.qweight", "60", "32"});
  stored.at("a.qweight").shape = {64, 3};
  expect_refused(stored, R"({"quant_method": "awq", "bits": 4, "version": "gemv"})",
                 Code::kDtypeUnsupported, {"awq", "gemv"});
  expect_refused(stored, R"({"quant_method": "awq", "bits": 8})", Code::kDtypeUnsupported,
                 {"8 bits"});
}

}  // namespace
}  // namespace shardwright
