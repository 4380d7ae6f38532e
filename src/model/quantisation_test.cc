// SPDX-License-Identifier: Apache-2.0
#include "model/quantisation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using Scales = QuantisationConfig::Scales;

constexpr std::string_view kFp8 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
constexpr std::string_view kUnstated = R"({"quant_method": "fp8", "weight_block_size": null})";
constexpr std::string_view kFp4 = R"({"quant_method": "mxfp4"})";

QuantisationConfig quantisation_config_of(std::string_view quantisation) {
  return read_quantisation_config(
             fmt::format(R"({{"model_type": "x", "quantization_config": {}}})", quantisation))
      .value();
}

std::string groups(std::string_view weights) {
  return fmt::format(
      R"({{"quant_method": "compressed-tensors", "config_groups": {{"g": {{"weights": {}}}}}}})",
      weights);
}

std::vector<TensorDesc> pair(const Dims& values, const Dims& scales,
                             std::string_view ending = "_scale_inv") {
  return {{"a.weight", DType::kF8E4M3, values},
          {"b.weight", DType::kBF16, {4}},
          {"a.weight" + std::string(ending), DType::kF32, scales}};
}

Error quantisation_refusal(std::span<const TensorDesc> stored, const QuantisationConfig& config) {
  const Result<ModelTensors> model = join_scales(stored, config);
  EXPECT_FALSE(model);
  return model ? Error{} : model.error();
}

#define EXPECT_REFUSED(stored, config, expected, ...)                                          \
  do {                                                                                         \
    const Error error = quantisation_refusal(stored, quantisation_config_of(config));          \
    EXPECT_EQ(error.code, Code::expected) << error.message;                                    \
    for (const std::string_view part : {__VA_ARGS__}) {                                        \
      EXPECT_NE(error.message.find(part), std::string::npos) << part << "; " << error.message; \
    }                                                                                          \
  } while (false)

TEST(QuantisationConfig, ReadsTheMethodsThatExist) {
  EXPECT_EQ(read_quantisation_config("").value().method, "");
  EXPECT_EQ(read_quantisation_config(R"({"quantization_config": null})").value().method, "");
  const QuantisationConfig blocks = quantisation_config_of(kFp8);
  EXPECT_EQ(blocks.method, "fp8");
  EXPECT_EQ(blocks.scales, Scales::kBlocks);
  EXPECT_EQ(blocks.block, (std::array<std::int64_t, 2>{128, 128}));
  EXPECT_EQ(quantisation_config_of(kUnstated).scales, Scales::kUnstated);
  EXPECT_EQ(quantisation_config_of(R"({"quant_method": "fbgemm_fp8"})").scales, Scales::kRows);
  EXPECT_EQ(quantisation_config_of(R"({"quant_method": "modelopt", "quant_algo": "FP8"})").scales,
            Scales::kTensor);
  EXPECT_EQ(quantisation_config_of(kFp4).scales, Scales::kFp4Groups);
  EXPECT_EQ(
      quantisation_config_of(groups(R"({"num_bits": 8, "type": "float", "strategy": "channel"})"))
          .scales,
      Scales::kRows);
  EXPECT_EQ(
      quantisation_config_of(groups(R"({"num_bits": 8, "type": "float", "strategy": "tensor"})"))
          .scales,
      Scales::kTensor);
  const QuantisationConfig packed = quantisation_config_of(groups(
      R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [64, 32]})"));
  EXPECT_EQ(packed.scales, Scales::kBlocks);
  EXPECT_EQ(packed.block, (std::array<std::int64_t, 2>{64, 32}));
  const auto of_text = [&](const char* text) {
    const std::string method = groups(fmt::format(
        R"({{"num_bits": 8, "type": "float", "strategy": "block", "block_structure": "{}"}})",
        text));
    return read_quantisation_config(fmt::format(R"({{"quantization_config": {}}})", method));
  };
  EXPECT_EQ(of_text("64x32").value().block, (std::array<std::int64_t, 2>{64, 32}));
  for (const char* text : {"64", "64x", "x32", "64x32x1", "64x-1", "64X32", ""}) {
    EXPECT_FALSE(of_text(text)) << text;
  }
  const Result<QuantisationConfig> nested = read_quantisation_config(
      R"({"text_config": {"quantization_config": {"quant_method": "mxfp4"}}})");
  EXPECT_EQ(nested.value().method, "mxfp4");
}

// A number where a name belongs would pass for nothing at all, which means the usual.
TEST(QuantisationConfig, TakesTextOnlyForNames) {
  for (const std::string_view config :
       {R"({"quant_method": 8})", R"({"quant_method": "fp8", "scale_fmt": true})",
        R"({"quant_method": "awq", "bits": 4, "version": 2})",
        R"({"quant_method": "awq", "bits": 4, "backend": ["llm-awq"]})",
        R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": 2})",
        R"({"quant_method": "gptq", "bits": 4, "pack_dtype": 32})",
        R"({"quant_method": "compressed-tensors", "format": 3, "config_groups": {}})",
        R"({"quant_method": "modelopt", "quant_algo": {}})"}) {
    const auto read =
        read_quantisation_config(fmt::format(R"({{"quantization_config": {}}})", config));
    ASSERT_FALSE(read) << config;
    EXPECT_EQ(read.error().code, Code::kJsonCorrupt);
    EXPECT_NE(read.error().message.find("expected text"), std::string::npos)
        << read.error().message;
  }
  EXPECT_TRUE(read_quantisation_config(
      R"({"quantization_config": {"quant_method": "fp8", "scale_fmt": null}})"));
}

PackedWeights only_packed(std::string_view quantisation) {
  const QuantisationConfig config = quantisation_config_of(quantisation);
  EXPECT_EQ(config.unsupported, "");
  EXPECT_EQ(config.packed.size(), 1U);
  return config.packed.empty() ? PackedWeights{} : config.packed[0];
}

TEST(QuantisationConfig, ReadsPackedWeights) {
  using Kind = PackedWeights::Kind;
  using Packed = PackedWeights;
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "int", "group_size": 32,
                                   "strategy": "group", "symmetric": true})")),
            (Packed{Kind::kIntegers, 4, 32, true, false}));
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 8, "type": "int", "strategy": "channel",
                                   "symmetric": false, "actorder": "weight"})")),
            (Packed{Kind::kIntegers, 8, 0, false, false}));
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "int", "group_size": 128,
                                   "actorder": "group"})")),
            (Packed{Kind::kIntegers, 4, 128, true, true}));
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "int", "group_size": -1})")).group, 0);
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "int"})")).group, -1);
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "float", "strategy": "tensor_group",
                                   "group_size": 16})"))
                .kind,
            Kind::kNvfp4);
  EXPECT_EQ(only_packed(groups(R"({"num_bits": 4, "type": "float", "strategy": "group",
                                   "group_size": 32})"))
                .kind,
            Kind::kMxfp4);
  EXPECT_EQ(only_packed(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})").kind,
            Kind::kNvfp4);
  EXPECT_EQ(only_packed(R"({"quant_method": "gptq", "bits": 4, "group_size": -1,
                            "desc_act": true})"),
            (Packed{Kind::kIntegers, 4, 0, false, true}));
  EXPECT_EQ(only_packed(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64})").group, 64);
  const QuantisationConfig mixed = quantisation_config_of(
      R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
          "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4"}}})");
  EXPECT_EQ(mixed.unsupported, "");
  EXPECT_TRUE(mixed.has_float8);
  EXPECT_EQ(mixed.packed.size(), 1U);
  EXPECT_TRUE(quantisation_config_of(R"({"quant_method": "gptq", "bits": 4})").has_lesser_zeros);
  EXPECT_FALSE(quantisation_config_of(
                   R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"})")
                   .has_lesser_zeros);
}

TEST(QuantisationConfig, ReadsWhatAutoRoundPacksAsOthersDo) {
  const auto read = [](std::string_view more) {
    return quantisation_config_of(
        fmt::format(R"({{"quant_method": "auto-round", "group_size": 128, {}}})", more));
  };
  using Packing = QuantisationConfig::Packing;
  for (const char* packing : {"auto_round:auto_gptq", "auto_round:auto_gptq:exllamav2"}) {
    const auto config = read(fmt::format(
        R"("bits": 4, "data_type": "int", "act_bits": 16, "packing_format": "{}")", packing));
    EXPECT_EQ(config.unsupported, "") << packing;
    EXPECT_EQ(config.packing, Packing::kGptq);
    EXPECT_TRUE(config.has_lesser_zeros);
    EXPECT_EQ(config.packed,
              (std::vector{PackedWeights{PackedWeights::Kind::kIntegers, 4, 128, false, false}}));
  }
  EXPECT_TRUE(read(R"("bits": 4)").has_lesser_zeros) << "what it takes where nothing is said";
  for (const char* packing : {"auto_round", "auto_round:gptqmodel"}) {
    const auto config = read(fmt::format(R"("bits": 8, "packing_format": "{}")", packing));
    EXPECT_EQ(config.packing, Packing::kGptq);
    EXPECT_FALSE(config.has_lesser_zeros) << packing;
  }
  EXPECT_EQ(read(R"("bits": 4, "packing_format": "auto_round:auto_awq")").packing, Packing::kAwq);
  EXPECT_EQ(read(R"("bits": 4, "extra_config": {"lm_head": {"bits": 16}, "a": {"bits": 4,
                     "group_size": 128}})")
                .unsupported,
            "");
  const std::vector<std::pair<std::string, std::string>> unread = {
      {R"("bits": 4, "packing_format": "auto_round:llm_compressor")", "llm_compressor"},
      {R"("bits": 4, "data_type": "mx_fp")", "mx_fp"},
      {R"("bits": 4, "act_bits": 8)", "act_bits"},
      {R"("bits": 3)", "3 bits"},
      {R"("bits": 4, "extra_config": {"a": {"bits": 8}})", "extra_config"},
      {R"("bits": 4, "extra_config": {"a": {"group_size": 32}})", "extra_config"}};
  for (const auto& [more, why] : unread) {
    EXPECT_THAT(read(more).unsupported, testing::HasSubstr(why)) << more;
  }
}

TEST(QuantisationConfig, SaysWhatIsNotRead) {
  const std::string integers = R"({"num_bits": 4, "type": "int", "strategy": "channel"})";
  const auto with = [&](std::string_view more) {
    return fmt::format(R"({{"quant_method": "compressed-tensors", "config_groups": {{"g":
                           {{"weights": {}}}}}, {}}})",
                       integers, more);
  };
  const std::vector<std::pair<std::string, std::string>> unread = {
      {R"({"quant_method": "gptq", "bits": 3})", "3 bits"},
      {R"({"quant_method": "gptq", "bits": 4, "pack_dtype": "int16"})", "int16"},
      {R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})", "marlin"},
      {R"({"quant_method": "awq", "bits": 4, "version": "gemv_fast"})", "gemv_fast"},
      {R"({"quant_method": "awq", "bits": 4, "zero_point": false})", "zero_point"},
      {R"({"quant_method": "awq", "bits": 4, "backend": "llm-awq"})", "llm-awq"},
      {R"({"quant_method": "bitsandbytes"})", "not read"},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ"})", "NVFP4_AWQ"},
      {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
           "quantized_layers": {"a": {"quant_algo": "W4A16_AWQ"}}})",
       "W4A16_AWQ"},
      {R"({"bits": 4})", "not read"},
      {R"({"quant_method": "compressed-tensors"})", "config_groups"},
      {groups(R"({"num_bits": 3, "type": "int"})"), "3 bits and type 'int'"},
      {groups(R"({"num_bits": 6, "type": "float"})"), "6 bits and type 'float'"},
      {groups(R"({"num_bits": 4, "type": "int", "symmetric": false, "strategy": "tensor"})"),
       "asymmetric"},
      {groups(R"({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 16})"), "fp4"},
      {groups(R"({"num_bits": 8, "type": "float", "strategy": "group"})"), "'group'"},
      {with(R"("format": "int-quantized")"), "int-quantized"},
      {with(R"("format": "naive-quantized")"), "naive-quantized"},
      {with(R"("format": "marlin-24")"), "marlin-24"},
      {with(R"("sparsity_config": {"format": "sparse-24-bitmask"})"), "sparse-24-bitmask"},
      {with(R"("transform_config": {"config_groups": {"R1": {}}})"), "transform_config"},
      {R"({"quant_method": "compressed-tensors", "config_groups": {
          "a": {"weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}},
          "b": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})",
       "two strategies"}};
  for (const auto& [quantisation, why] : unread) {
    const std::string found = quantisation_config_of(quantisation).unsupported;
    EXPECT_NE(found.find(why), std::string::npos) << quantisation << ": " << found;
  }
  for (const std::string_view text :
       {R"({"quantization_config": 3})",
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": 128}})",
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}})",
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 128]}})",
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [-1, 128]}})",
        R"({"quantization_config": {"quant_method": "gptq", "bits": "4"}})",
        R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 0}})",
        R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "desc_act": 1}})",
        R"({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": -7}})"}) {
    const Result<QuantisationConfig> config = read_quantisation_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::kJsonCorrupt);
  }
}

TEST(JoinScales, LeavesPlainModelsAlone) {
  const std::vector<TensorDesc> stored = {{"a.weight", DType::kBF16, {4, 4}},
                                          {"router_scale", DType::kF32, {4}},
                                          {"ids_blocks", DType::kU8, {4}}};
  const ModelTensors model = join_scales(stored, {}).value();
  EXPECT_EQ(model.tensors.size(), 3U);
  EXPECT_TRUE(model.quantised.empty());
}

TEST(JoinScales, TakesBlocksWithPartialOnesAtTheEdges) {
  const std::vector<TensorDesc> stored = pair({576, 300}, {5, 3});
  const ModelTensors model = join_scales(stored, quantisation_config_of(kFp8)).value();
  ASSERT_EQ(model.tensors.size(), 2U);
  EXPECT_EQ(model.tensors[0].name, "a.weight");
  EXPECT_EQ(model.tensors[0].dtype, DType::kBF16);
  EXPECT_EQ(model.tensors[0].shape, (Dims{576, 300}));
  ASSERT_EQ(model.quantised.size(), 1U);
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.values, 0U);
  EXPECT_EQ(joined.scales, 2U);
  EXPECT_EQ(joined.block, (Dims{128, 128}));
  EXPECT_EQ(joined.stride, (Dims{3, 1}));
}

// The shapes tell: tables, of which single rows are read, have blocks within a row.
TEST(JoinScales, TakesBlocksWithinRows) {
  const auto block = [](const Dims& values, const Dims& scales) {
    const Result<ModelTensors> model =
        join_scales(pair(values, scales), quantisation_config_of(kFp8));
    EXPECT_TRUE(model) << model.error().message;
    return model ? model->quantised[0].block : Dims{};
  };
  EXPECT_EQ(block({5, 300}, {5, 3}), (Dims{1, 128}));
  EXPECT_EQ(block({1, 300}, {1, 3}), (Dims{128, 128})) << "of one row both are the same";
  EXPECT_EQ(block({8, 200, 128}, {8, 200, 1}), (Dims{1, 1, 128}));
  EXPECT_REFUSED(pair({5, 300}, {5, 300}), kFp8, kShapeMismatch, "(5, 300)");
  EXPECT_REFUSED(pair({300, 5}, {3, 5}), kFp8, kShapeMismatch, "(3, 5)");
}

TEST(JoinScales, PackedExpertsHaveBlocksOfTheirOwn) {
  const std::vector<TensorDesc> stored = {{"e.gate_up_proj", DType::kF8E4M3, {8, 200, 128}},
                                          {"e.gate_up_proj_scale_inv", DType::kF32, {8, 2, 1}}};
  const ModelTensors model = join_scales(stored, quantisation_config_of(kFp8)).value();
  EXPECT_EQ(model.quantised[0].block, (Dims{1, 128, 128}));
  EXPECT_EQ(model.quantised[0].stride, (Dims{2, 1, 1}));
}

TEST(JoinScales, TakesScalesOfRowsTensorsAndExperts) {
  const auto block = [](const Dims& values, const Dims& scales, std::string_view config) {
    const Result<ModelTensors> model =
        join_scales(pair(values, scales, "_scale"), quantisation_config_of(config));
    EXPECT_TRUE(model) << model.error().message;
    return model ? model->quantised[0].block : Dims{};
  };
  EXPECT_EQ(block({6, 8}, {6, 1}, kUnstated), (Dims{1, 8}));
  EXPECT_EQ(block({6, 8}, {6}, kUnstated), (Dims{1, 8}));
  EXPECT_EQ(block({6, 8}, {}, kUnstated), (Dims{6, 8}));
  EXPECT_EQ(block({6, 8}, {1}, kUnstated), (Dims{6, 8}));
  EXPECT_EQ(block({3, 6, 8}, {3, 1, 1}, R"({"quant_method": "modelopt", "quant_algo": "FP8"})"),
            (Dims{1, 6, 8}));
  EXPECT_EQ(block({6, 8}, {6, 1}, R"({"quant_method": "fbgemm_fp8"})"), (Dims{1, 8}));
}

TEST(JoinScales, RefusesScalesOfAnotherShape) {
  EXPECT_REFUSED(pair({576, 300}, {4, 3}), kFp8, kShapeMismatch, "a.weight_scale_inv", "(4, 3)",
                 "128 x 128", "(576, 300)");
  EXPECT_REFUSED(pair({576, 300}, {5, 3, 1}), kFp8, kShapeMismatch, "(5, 3, 1)");
  EXPECT_REFUSED(pair({576}, {5}), kFp8, kShapeMismatch, "(576,)");
  EXPECT_REFUSED(pair({6, 8}, {6, 1}), R"({"quant_method": "modelopt", "quant_algo": "FP8"})",
                 kShapeMismatch, "one for the tensor");
  EXPECT_REFUSED(pair({6, 8}, {6, 8}), R"({"quant_method": "fbgemm_fp8"})", kShapeMismatch,
                 "one for each row");
  EXPECT_REFUSED(pair({6, 8}, {3, 1}), kUnstated, kShapeMismatch, "(3, 1)");
}

TEST(JoinScales, RefusesHalvesOfPairs) {
  std::vector<TensorDesc> stored = pair({6, 8}, {1, 1});
  stored.pop_back();
  EXPECT_REFUSED(stored, kFp8, kUnmatchedSource, "a.weight:", "a.weight_scale_inv");
  stored = pair({6, 8}, {1, 1});
  stored.erase(stored.begin());
  EXPECT_REFUSED(stored, kFp8, kUnmatchedSource, "a.weight_scale_inv:", "without values",
                 "a.weight ");
  stored = pair({6, 8}, {1, 1});
  stored[0].dtype = DType::kBF16;
  EXPECT_REFUSED(stored, kFp8, kUnmatchedSource, "a.weight bfloat16");
  stored = pair({6, 8}, {1, 1});
  stored.push_back({"a.weight_scale", DType::kF32, {}});
  EXPECT_REFUSED(stored, kFp8, kDuplicateName, "a.weight_scale_inv", "a.weight_scale,");
}

TEST(JoinScales, RefusesWhatItDoesNotUnderstand) {
  std::vector<TensorDesc> stored = pair({6, 8}, {1, 1});
  EXPECT_REFUSED(stored, "null", kConfigMissing, "a.weight", "quantization_config", "--hf-config");
  EXPECT_REFUSED(stored, R"({"quant_method": "awq"})", kDtypeUnsupported, "awq",
                 "--to safetensors");
  stored[2].dtype = DType::kU8;
  EXPECT_REFUSED(stored, kFp8, kDtypeUnsupported, "a.weight_scale_inv", "uint8");
  stored[0].dtype = DType::kF8E5M2;
  EXPECT_REFUSED(stored, kFp8, kDtypeUnsupported, "float8_e5m2", "float8_e4m3fn");
  const std::vector<TensorDesc> packed = {{"a.qweight", DType::kI32, {4, 4}}};
  EXPECT_REFUSED(packed, R"({"quant_method": "gptq"})", kDtypeUnsupported, "gptq");
  const std::vector<TensorDesc> of_mlx = {{"a.weight", DType::kU32, {4, 4}}};
  EXPECT_REFUSED(of_mlx, R"({"group_size": 64, "bits": 4})", kDtypeUnsupported, "mlx",
                 "give the model that it was made of");
  const std::vector<TensorDesc> scaled = {{"a.weight_scale", DType::kBF16, {4, 1}},
                                          {"a.weight_packed", DType::kI32, {4, 4}}};
  EXPECT_REFUSED(scaled, groups(R"({"num_bits": 3, "type": "int"})"), kDtypeUnsupported,
                 "3 bits and type 'int'");
  // What somebody multiplied out is plain, whatever the config still says.
  const std::vector<TensorDesc> plain = {{"a.weight", DType::kBF16, {4, 4}},
                                         {"steps", DType::kI64, {1}}};
  EXPECT_EQ(join_scales(plain, quantisation_config_of(R"({"quant_method": "gptq"})"))
                .value()
                .tensors.size(),
            2U);
}

TEST(JoinScales, ListsScalesOfActivations) {
  std::vector<TensorDesc> stored = pair({6, 8}, {1, 1});
  stored.push_back({"a.input_scale", DType::kF32, {}});
  stored.push_back({"a.k_scale", DType::kF32, {}});
  stored.push_back({"a.k_zero_point", DType::kI8, {}});
  const ModelTensors model = join_scales(stored, quantisation_config_of(kFp8)).value();
  EXPECT_EQ(model.tensors.size(), 2U);
  EXPECT_EQ(model.ignored,
            (std::vector<std::string>{"a.input_scale", "a.k_scale", "a.k_zero_point"}));
  // Nothing says that it belongs to a quantisation.
  const std::vector<TensorDesc> plain = {{"a.input_scale", DType::kF32, {}}};
  EXPECT_EQ(join_scales(plain, {}).value().tensors.size(), 1U);
}

std::vector<TensorDesc> fp4_pair() {
  return {{"e.down_proj_blocks", DType::kU8, {4, 64, 3, 16}},
          {"e.down_proj_scales", DType::kU8, {4, 64, 3}}};
}

// Experts in one parameter, as Mistral Small 4's FP8 release and ModelOpt have them.
TEST(JoinScales, TakesScalesOfParametersOfExperts) {
  constexpr std::string_view kModelOptFp8 = R"({"quant_method": "modelopt", "quant_algo": "FP8"})";
  const std::string experts = "model.layers.0.mlp.experts.down_proj";
  const std::vector<TensorDesc> modelopt = {{experts, DType::kF8E4M3, {4, 8, 16}},
                                            {experts + "_weight_scale", DType::kF32, {}},
                                            {experts + "_input_scale", DType::kF32, {}}};
  const ModelTensors one = join_scales(modelopt, quantisation_config_of(kModelOptFp8)).value();
  ASSERT_EQ(one.tensors.size(), 1U);
  EXPECT_EQ(one.tensors[0].name, experts);
  EXPECT_EQ(one.quantised[0].scales, 1U);
  const std::vector<TensorDesc> release = {{experts, DType::kF8E4M3, {4, 8, 16}},
                                           {experts + "_scale_inv", DType::kF32, {4, 1, 1}},
                                           {experts + "_activation_scale", DType::kF32, {4}},
                                           {"model.layers.0.self_attn.kv_scale", DType::kF32, {}}};
  const ModelTensors other =
      join_scales(release, quantisation_config_of(R"({"quant_method": "fp8"})")).value();
  ASSERT_EQ(other.tensors.size(), 1U);
  EXPECT_EQ(other.quantised[0].scales, 1U);
  const std::vector<TensorDesc> alike = {{"model.a_input_scale", DType::kF32, {1}}};
  EXPECT_EQ(join_scales(alike, quantisation_config_of(kModelOptFp8))->tensors.size(), 1U)
      << "behind experts only";
}

TEST(JoinScales, TurnsFp4GroupsAround) {
  const ModelTensors model = join_scales(fp4_pair(), quantisation_config_of(kFp4)).value();
  ASSERT_EQ(model.tensors.size(), 1U);
  EXPECT_EQ(model.tensors[0].name, "e.down_proj");
  EXPECT_EQ(model.tensors[0].shape, (Dims{4, 96, 64}));
  const QuantisedTensor& joined = model.quantised[0];
  EXPECT_EQ(joined.dtype, DType::kF4E2M1X2);
  EXPECT_EQ(joined.strides, (Dims{6144, 1, 96}));
  EXPECT_EQ(joined.block, (Dims{1, 32, 1}));
  EXPECT_EQ(joined.stride, (Dims{192, 1, 3}));
}

TEST(JoinScales, RefusesBrokenFp4) {
  std::vector<TensorDesc> stored = fp4_pair();
  EXPECT_REFUSED(stored, "null", kConfigMissing, "e.down_proj_blocks");
  stored.pop_back();
  EXPECT_REFUSED(stored, kFp4, kUnmatchedSource, "e.down_proj_blocks", "e.down_proj_scales");
  stored = fp4_pair();
  stored.erase(stored.begin());
  EXPECT_REFUSED(stored, kFp4, kUnmatchedSource, "e.down_proj_scales", "e.down_proj_blocks");
  stored = fp4_pair();
  stored[1].shape = {4, 64, 4};
  EXPECT_REFUSED(stored, kFp4, kShapeMismatch, "(4, 64, 4)", "(4, 64, 3)");
  stored = fp4_pair();
  stored[0].shape = {4, 64, 3, 8};
  EXPECT_REFUSED(stored, kFp4, kShapeMismatch, "(4, 64, 3, 8)");
  stored = fp4_pair();
  stored.push_back({"e.down_proj", DType::kBF16, {4, 96, 64}});
  EXPECT_REFUSED(stored, kFp4, kDuplicateName, "e.down_proj too");
  stored = fp4_pair();
  stored[0].shape = {1, 1, std::int64_t{1} << 60, 16};
  stored[1].shape = {1, 1, std::int64_t{1} << 60};
  EXPECT_REFUSED(stored, kFp4, kLimit, "e.down_proj_blocks");
}

}  // namespace
}  // namespace shardwright
