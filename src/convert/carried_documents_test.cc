// SPDX-License-Identifier: Apache-2.0
#include "convert/carried_documents.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "convert/golden.h"
#include "format/config_edits.h"
#include "layout/component_spec.h"
#include "model/arguments.h"
#include "model/built_in_models.h"
#include "state/common_state.h"
#include "state/run_config.h"
#include "state/state_document.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using testing::HasSubstr;
using testing::Not;

ConvertRequest documents_request(const std::string& input, const std::string& output,
                                 std::string_view format,
                                 std::optional<DType> dtype = std::nullopt) {
  ConvertRequest request;
  request.input = input;
  request.output = output;
  request.format = format;
  request.dtype = dtype;
  if (format == "mimo") {
    const std::vector<std::string> layout = {"language=tp=1", "images=tp=1"};
    request.components = parse_components(layout).value();
  }
  return request;
}

void convert_or_fail(const ConvertRequest& request) {
  const auto done = convert_now(request);
  ASSERT_TRUE(done) << done.error().text();
}

// Every dtype that a config.json says, at any depth.
std::vector<std::string> said_dtypes(const nlohmann::json& node) {
  std::vector<std::string> said;
  for (const auto& [key, value] : node.items()) {
    if (key == "dtype" || key == "torch_dtype") said.push_back(value.get<std::string>());
    if (!value.is_object()) continue;
    for (std::string& inner : said_dtypes(value)) said.push_back(std::move(inner));
  }
  return said;
}

std::vector<std::string> dtypes_of(const TemporaryFolder& folder, const std::string& config) {
  return said_dtypes(nlohmann::json::parse(folder.get(config)));
}

TEST(WrittenDtype, IsThatOfMostElements) {
  const auto draft = [](const std::string& name, DType dtype, std::int64_t elements) {
    return DraftTensor{{name, dtype, {elements}}, {}, std::nullopt};
  };
  std::vector<DraftTensor> tensors = {draft("a", DType::kF32, 2), draft("b", DType::kBF16, 3),
                                      draft("optimizer.state.exp_avg.a", DType::kF32, 9),
                                      draft("hf_extra.a", DType::kF32, 9),
                                      draft("ids", DType::kI64, 9)};
  EXPECT_EQ(written_dtype(tensors), DType::kBF16);
  tensors.push_back(draft("c", DType::kF8E4M3, 1));
  EXPECT_EQ(written_dtype(tensors), std::nullopt);
  EXPECT_EQ(written_dtype({}), std::nullopt);
}

std::string with_dtype(const std::string& config, DType dtype, DtypeScope scope) {
  std::vector<std::string> notes;
  ConfigEdits edits{dtype, scope};
  const std::string edited = edited_config(config, edits, notes).value();
  EXPECT_EQ(edited.empty(), notes.empty());
  return edited.empty() ? "unchanged" : nlohmann::json::parse(edited).dump();
}

TEST(ConfigEdits, SayOneTypeWhereverItIsSaid) {
  const std::string nested =
      R"({"dtype":"bfloat16","a":{"torch_dtype":"bfloat16"},"b":{"dtype":"float32"},)"
      R"("quantization_config":{"dtype":"bfloat16"}})";
  EXPECT_EQ(with_dtype(nested, DType::kF16, DtypeScope::kAll),
            R"({"a":{"torch_dtype":"float16"},"b":{"dtype":"float16"},"dtype":"float16",)"
            R"("quantization_config":{"dtype":"bfloat16"}})");
  EXPECT_THAT(with_dtype(nested, DType::kF16, DtypeScope::kSame),
              HasSubstr(R"("b":{"dtype":"float32"},"dtype":"float16")"));
  EXPECT_THAT(with_dtype(nested, DType::kF16, DtypeScope::kTop),
              HasSubstr(R"("a":{"torch_dtype":"bfloat16"})"));
  EXPECT_EQ(with_dtype(nested, DType::kBF16, DtypeScope::kSame), "unchanged");
  EXPECT_EQ(with_dtype(R"({"torch_dtype":"torch.bfloat16"})", DType::kBF16, DtypeScope::kAll),
            "unchanged");
  EXPECT_EQ(with_dtype("{}", DType::kF16, DtypeScope::kSame), "unchanged");
  EXPECT_EQ(with_dtype("{}", DType::kF16, DtypeScope::kAll), R"({"dtype":"float16"})");
}

TEST(ConfigEdits, FindTheVocabularyWhereverAFamilySaysIt) {
  std::size_t sections = 0;
  for (const MappingText& text : built_in_models()) {
    std::string place = nlohmann::json::parse(text.json).value("config_section", "");
    if (place.empty()) continue;
    ++sections;
    std::ranges::replace(place, '.', '/');
    const nlohmann::json::json_pointer size("/" + place + "/vocab_size");
    nlohmann::json config;
    config[size] = 10;
    config["talker_config"]["text_config"]["vocab_size"] = 10;  // another vocabulary
    ConfigEdits edits;
    edits.vocabulary = 20;
    std::vector<std::string> notes;
    const std::string edited = edited_config(config.dump(), edits, notes).value();
    ASSERT_FALSE(edited.empty()) << text.name;
    config[size] = 20;
    EXPECT_EQ(nlohmann::json::parse(edited), config) << text.name;
  }
  EXPECT_GT(sections, 3U);
}

using FamilyName = const char*;
class DtypeOnTheWay : public testing::TestWithParam<std::tuple<FamilyName, std::string_view>> {};

TEST_P(DtypeOnTheWay, IsWhatTheTensorsAre) {
  const auto& [family, format] = GetParam();
  const TemporaryFolder folder;
  const std::string source = golden_path(std::string("hf/") + family + "/hf");
  convert_or_fail(documents_request(source, folder / "there", format, DType::kF16));
  EXPECT_THAT(dtypes_of(folder, "there/iter_0000000/hf/config.json"),
              testing::AllOf(Not(testing::IsEmpty()), testing::Each("float16")));
  convert_or_fail(documents_request(folder / "there", folder / "back", "hf"));
  EXPECT_THAT(dtypes_of(folder, "back/config.json"),
              testing::AllOf(Not(testing::IsEmpty()), testing::Each("float16")));
  const TensorMap back = read_all_tensors(folder / "back").value();
  for (const auto& [name, tensor] : back) EXPECT_NE(tensor.dtype, DType::kBF16) << name;
}

INSTANTIATE_TEST_SUITE_P(Targets, DtypeOnTheWay,
                         testing::Combine(testing::Values("llama3", "qwen3_vl"),
                                          testing::Values("torch_dist", "legacy")));
INSTANTIATE_TEST_SUITE_P(Mimo, DtypeOnTheWay,
                         testing::Combine(testing::Values("qwen3_vl"), testing::Values("mimo")));
INSTANTIATE_TEST_SUITE_P(Fsdp, DtypeOnTheWay,
                         testing::Combine(testing::Values("llama3"),
                                          testing::Values("fsdp_dtensor")));

// What carries a config.json of other weights: a training run's, or an older conversion's.
TEST(DtypeOfMegatron, IsWhatTheTensorsAreWhateverIsCarried) {
  const TemporaryFolder folder;
  const std::string source = golden_path("hf/llama3/hf");
  convert_or_fail(documents_request(source, folder / "fsdp", "fsdp_dtensor"));
  convert_or_fail(documents_request(folder / "fsdp", folder / "a", "hf"));
  EXPECT_THAT(dtypes_of(folder, "a/config.json"), testing::ElementsAre("float32"));
  convert_or_fail(documents_request(folder / "fsdp", folder / "b", "hf", DType::kBF16));
  EXPECT_THAT(dtypes_of(folder, "b/config.json"), testing::ElementsAre("bfloat16"));

  convert_or_fail(documents_request(source, folder / "there", "torch_dist", DType::kF16));
  const std::string carried = "there/iter_0000000/hf/config.json";
  folder.put(carried, read_golden("hf/llama3/hf/config.json"));
  convert_or_fail(documents_request(folder / "there", folder / "c", "hf"));
  EXPECT_THAT(dtypes_of(folder, "c/config.json"), testing::ElementsAre("float16"));
  convert_or_fail(documents_request(folder / "there", folder / "d", "legacy"));
  EXPECT_THAT(dtypes_of(folder, "d/iter_0000000/hf/config.json"), testing::ElementsAre("float16"));
}

// A model that stays as it is keeps its files byte for byte.
TEST(DtypeOfHuggingFace, StaysWhereTheTensorsDo) {
  const TemporaryFolder folder;
  const std::string config = read_golden("hf/qwen3_vl/hf/config.json");
  const std::string source = golden_path("hf/qwen3_vl/hf");
  convert_or_fail(documents_request(source, folder / "a", "torch_dist"));
  EXPECT_EQ(folder.get("a/iter_0000000/hf/config.json"), config);
  convert_or_fail(documents_request(source, folder / "b", "hf"));
  EXPECT_EQ(folder.get("b/config.json"), config);
  convert_or_fail(documents_request(source, folder / "c", "hf", DType::kF16));
  EXPECT_THAT(dtypes_of(folder, "c/config.json"), testing::Each("float16"));
}

TEST(HfConfigOnTheWayToMegatron, IsWhatLiesBesideTheTensors) {
  const TemporaryFolder folder;
  auto config = nlohmann::json::parse(read_golden("hf/llama3/hf/config.json"));
  config["rms_norm_eps"] = 1e-3;
  folder.put("given/config.json", config.dump());
  folder.put("given/tokenizer_config.json", "{}");
  for (const std::string format : {"torch_dist", "legacy"}) {
    ConvertRequest request =
        documents_request(golden_path("hf/llama3/hf"), folder / format, format);
    request.hf_config_dir = folder / "given";
    convert_or_fail(request);
    EXPECT_EQ(folder.get(format + "/iter_0000000/hf/config.json"), config.dump());
    EXPECT_EQ(folder.get(format + "/iter_0000000/hf/tokenizer_config.json"), "{}");
  }
}

// Megatron-LM and Megatron-Bridge keep it in a folder of its own.
TEST(TokenizerOfARun, GoesToHuggingFaceWhereThereIsNoOther) {
  const TemporaryFolder folder;
  const std::string config = read_golden("hf/llama3/hf/config.json");
  folder.put("given/config.json", config);
  for (const std::string format : {"torch_dist", "legacy"}) {
    convert_or_fail(documents_request(golden_path("hf/llama3/hf"), folder / format, format));
    const std::string run = format + "/iter_0000000/";
    folder.put(run + "tokenizer/tokenizer.json", R"({"of": "the run"})");
    folder.put(run + "tokenizer/merges.txt", "a b");
    folder.put(run + "tokenizer/config.json", "{}");
    folder.put(run + "hf/merges.txt", "c d");
    ConvertRequest request = documents_request(folder / format, folder / (format + ".hf"), "hf");
    const Result<PreparedConversion> done = convert_now(request);
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_THAT(done->notes, testing::Contains("the tokenizer goes along: 1 files of tokenizer/"));
    EXPECT_EQ(folder.get(format + ".hf/tokenizer.json"), R"({"of": "the run"})");
    EXPECT_EQ(folder.get(format + ".hf/merges.txt"), "c d") << "the model's own";
    EXPECT_EQ(folder.get(format + ".hf/config.json"), config);

    request.hf_config_dir = folder / "given";
    request.output = folder / (format + ".given");
    convert_or_fail(request);
    EXPECT_EQ(folder.get(format + ".given/merges.txt"), "a b");

    folder.put("other/config.json", config);
    folder.put("other/vocab.json", "{}");
    request.hf_config_dir = folder / "other";
    request.output = folder / (format + ".other");
    convert_or_fail(request);
    EXPECT_EQ(folder.get(format + ".other/tokenizer.json"), "") << "two were mixed";
  }
}

TEST(DtypeOfArguments, IsWhatTheTensorsAre) {
  const TemporaryFolder folder;
  const auto flags = [&](const std::string& path) {
    const Arguments arguments = open_checkpoint(folder / path).value().arguments;
    return std::pair(std::get<bool>(arguments.at("bf16")), std::get<bool>(arguments.at("fp16")));
  };
  convert_or_fail(
      documents_request(golden_path("hf/llama3/hf"), folder / "a", "torch_dist", DType::kF16));
  EXPECT_EQ(flags("a"), std::pair(false, true));
  const std::string run = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  convert_or_fail(documents_request(run, folder / "b", "torch_dist"));
  EXPECT_EQ(flags("b"), std::pair(true, false));
  convert_or_fail(documents_request(run, folder / "c", "torch_dist", DType::kF32));
  EXPECT_EQ(flags("c"), std::pair(false, false));
  EXPECT_THAT(folder.get("b/iter_0000010/common.pt"), HasSubstr("bfloat16"));
  EXPECT_THAT(folder.get("c/iter_0000010/common.pt"), Not(HasSubstr("bfloat16")));
}

// Megatron takes a hybrid model's stages from the bars in its pattern, and nothing beside them.
// Megatron-Bridge stores none, and files of ranks have the embedding once more in the last stage.
TEST(ArgumentsOfNoRun, SayWhetherTheOutputLayerIsTheEmbedding) {
  for (const bool is_tied : {true, false}) {
    const TemporaryFolder folder;
    ConvertRequest request;
    request.input = golden_path(is_tied ? "hf/qwen2/hf" : "hf/llama3/hf");
    request.output = folder / "in";
    ASSERT_TRUE(convert_now(request));
    const std::string common = "in/iter_0000000/common.pt";
    StateDocument state = StateDocument::read(folder.get(common)).value();
    ASSERT_TRUE(state.document().erase(state.dict(), "args"));
    folder.put(common, state.encode().value());
    request.input = folder / "in";
    request.output = folder / "ranks";
    request.format = "legacy";
    request.parallel.pipeline = 2;
    ASSERT_TRUE(convert_now(request));
    const TensorMap read = read_all_tensors(folder / "ranks").value();
    EXPECT_EQ(read.contains("output_layer.weight"), !is_tied);
  }
}

TEST(LayoutOfArguments, OfHybridModelsIsInTheirPattern) {
  const TemporaryFolder folder;
  convert_or_fail(documents_request(golden_path("hf/nemotron_h/hf"), folder / "hf", "torch_dist"));
  const std::string state = "hf/iter_0000000/common.pt";
  const CommonState made = CommonState::read(folder.get(state)).value();
  const std::string kinds = std::get<std::string>(made.arguments().at("hybrid_override_pattern"));
  CommonStateEdits edits;
  edits.arguments = {{"hybrid_override_pattern", ArgValue{}},
                     {"hybrid_layer_pattern", kinds.substr(0, 1) + "|" + kinds.substr(1)},
                     {"account_for_loss_in_pipeline_split", true}};
  std::vector<std::string> notes;
  folder.put(state, made.encode(edits, notes).value());
  const auto said = [&](const std::string& name, const ParallelConfig& parallel) {
    ConvertRequest request = documents_request(folder / "hf", folder / name, "torch_dist");
    request.parallel = parallel;
    convert_or_fail(request);
    return open_checkpoint(folder / name).value().arguments;
  };
  const Arguments one = said("one", {});
  EXPECT_EQ(one.at("hybrid_layer_pattern"), ArgValue{kinds});
  EXPECT_EQ(one.at("account_for_loss_in_pipeline_split"), ArgValue{false});
  for (const std::int64_t stages : {2, 3}) {
    const Arguments more = said(fmt::format("of{}", stages), {.pipeline = stages});
    const auto& staged = std::get<std::string>(more.at("hybrid_layer_pattern"));
    EXPECT_EQ(std::ranges::count(staged, '|'), stages - 1) << staged;
    EXPECT_EQ(more.at("decoder_last_pipeline_num_layers"), ArgValue{}) << "beside bars";
  }
}

constexpr const char* kRunConfig = R"(checkpoint:
  save: /data/run
model:
  _target_: megatron.bridge.models.qwen_vl.qwen3_vl_provider.Qwen3VLModelProvider
  bf16: true
  num_layers: 3
  pipeline_model_parallel_size: 7
  tensor_model_parallel_size: 7
)";

class RunConfigOnTheWay : public testing::TestWithParam<std::string_view> {};

TEST_P(RunConfigOnTheWay, SaysTheSizesOfTheTarget) {
  const TemporaryFolder folder;
  convert_or_fail(documents_request(golden_path("hf/qwen3_vl/hf"), folder / "in", "torch_dist"));
  folder.put("in/iter_0000000/run_config.yaml", kRunConfig);
  ConvertRequest request =
      documents_request(folder / "in", folder / "out", GetParam(), DType::kF16);
  request.parallel.tensor = 2;
  if (GetParam() == "mimo") {
    const std::vector<std::string> layout = {"language=tp=2", "images=tp=1,dp=2"};
    request.components = parse_components(layout).value();
  }
  convert_or_fail(request);
  const std::string text = folder.get("out/iter_0000000/run_config.yaml");
  const Arguments model = read_run_config(text).value();
  const bool is_mimo = GetParam() == "mimo";
  const std::string provider = is_mimo ? "standard_provider." : "";
  EXPECT_EQ(model.at(provider + "tensor_model_parallel_size"), ArgValue{std::int64_t{2}}) << text;
  EXPECT_EQ(model.at(provider + "pipeline_model_parallel_size"), ArgValue{std::int64_t{1}});
  EXPECT_EQ(model.at(provider + "num_layers"), ArgValue{std::int64_t{3}});
  EXPECT_EQ(model.at(provider + "bf16"), ArgValue{false});
  EXPECT_THAT(text, HasSubstr("  save: null\n"));
  if (!is_mimo) return;
  const std::string images = "megatron_mimo_parallelism_config.module_parallelisms.images.";
  EXPECT_EQ(model.at(images + "data_parallel_size"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at(images + "rank_offset"), ArgValue{std::int64_t{2}});
  // And back to an ordinary model.
  convert_or_fail(documents_request(folder / "out", folder / "back", "torch_dist"));
  const std::string back = folder.get("back/iter_0000000/run_config.yaml");
  EXPECT_THAT(back, HasSubstr("\n  tensor_model_parallel_size: 1\n"));
  EXPECT_THAT(back, Not(HasSubstr("standard_provider")));
}

INSTANTIATE_TEST_SUITE_P(Targets, RunConfigOnTheWay,
                         testing::Values("torch_dist", "legacy", "mimo"));

// What Megatron-Bridge needs to build the model: values as in files that it wrote itself.
TEST(RunConfigFromHuggingFace, HasTheProviderAndItsFields) {
  const TemporaryFolder folder;
  ConvertRequest request =
      documents_request(golden_path("hf/qwen3_moe/hf"), folder / "moe", "torch_dist", DType::kF16);
  request.parallel = {2, 1, 1, 2, 1};
  convert_or_fail(request);
  const std::string text = folder.get("moe/iter_0000000/run_config.yaml");
  const Arguments model = read_run_config(text).value();
  const Arguments arguments = open_checkpoint(folder / "moe").value().arguments;
  EXPECT_EQ(model.at("_target_"),
            ArgValue{std::string("megatron.bridge.models.gpt_provider.GPTModelProvider")});
  for (const char* same :
       {"num_layers", "hidden_size", "ffn_hidden_size", "num_query_groups", "kv_channels",
        "moe_layer_freq", "moe_router_topk", "rotary_base", "layernorm_epsilon", "vocab_size",
        "normalization", "qk_layernorm", "add_bias_linear", "seq_length", "bf16", "fp16"}) {
    EXPECT_EQ(to_string(model.at(same)), to_string(arguments.at(same))) << same;
  }
  EXPECT_EQ(model.at("num_moe_experts"), arguments.at("num_experts"));
  EXPECT_EQ(model.at("tensor_model_parallel_size"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at("expert_model_parallel_size"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at("share_embeddings_and_output_weights"), ArgValue{false});
  EXPECT_EQ(model.at("gated_linear_unit"), ArgValue{true});
  EXPECT_EQ(model.at("activation_func._target_"),
            ArgValue{std::string("torch.nn.functional.silu")});
  EXPECT_EQ(model.at("params_dtype._target_"), ArgValue{std::string("torch.float16")});
  EXPECT_EQ(model.at("should_pad_vocab"), ArgValue{false});
  EXPECT_FALSE(model.contains("num_experts"));
  EXPECT_FALSE(model.contains("swiglu"));
}

TEST(RunConfigFromHuggingFace, HasTheComponentsOfMimo) {
  const TemporaryFolder folder;
  convert_or_fail(documents_request(golden_path("hf/qwen35_vl/hf"), folder / "mimo", "mimo"));
  const std::string text = folder.get("mimo/iter_0000000/run_config.yaml");
  const Arguments model = read_run_config(text).value();
  EXPECT_EQ(model.at("standard_provider._target_"),
            ArgValue{std::string(
                "megatron.bridge.models.qwen_vl.qwen35_vl_provider.Qwen35VLModelProvider")});
  EXPECT_EQ(model.at("standard_provider.image_token_id"), ArgValue{std::int64_t{500}});
  EXPECT_EQ(model.at("standard_provider.spatial_merge_size"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at("standard_provider.vision_config.depth"), ArgValue{std::int64_t{2}});
  EXPECT_EQ(model.at("standard_provider.vision_config.dtype._target_"),
            ArgValue{std::string("torch.bfloat16")});
  EXPECT_EQ(model.at("megatron_mimo_parallelism_config.module_parallelisms.images.rank_offset"),
            ArgValue{std::int64_t{1}});
}

// The Bridge imports what the file names, so nothing that config.json says may become such a name.
TEST(RunConfigFromHuggingFace, IsNoWayIntoTheBridge) {
  const TemporaryFolder folder;
  std::filesystem::copy(golden_path("hf/qwen35_vl/hf"), folder / "in",
                        std::filesystem::copy_options::recursive);
  auto config = nlohmann::ordered_json::parse(folder.get("in/config.json"));
  auto& vision = config["vision_config"];
  vision["_target_"] = "os.system";
  vision["a: 1\n    _target_"] = "posix";
  vision["dtype"] = "bfloat16\n    _target_: subprocess.run";
  vision["mode"] = "ON";
  folder.put("in/config.json", config.dump());
  convert_or_fail(documents_request(folder / "in", folder / "out", "torch_dist"));
  const std::string text = folder.get("out/iter_0000000/run_config.yaml");
  const Arguments model = read_run_config(text).value();
  EXPECT_EQ(model.at("vision_config._target_"),
            ArgValue{std::string(
                "transformers.models.qwen3_5.configuration_qwen3_5.Qwen3_5VisionConfig")});
  EXPECT_THAT(text, testing::AllOf(Not(HasSubstr("os.system")), Not(HasSubstr("subprocess")),
                                   HasSubstr("    mode: \"ON\"\n"),
                                   HasSubstr("    \"a: 1\\n    _target_\": posix\n")));
}

TEST(RunConfigFromHuggingFace, IsNotInvented) {
  const TemporaryFolder folder;
  const auto done =
      convert_now(documents_request(golden_path("hf/gemma2/hf"), folder / "out", "torch_dist"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_FALSE(std::filesystem::exists(folder / "out/iter_0000000/run_config.yaml"));
  EXPECT_THAT(done->notes, testing::Contains(HasSubstr("no run_config.yaml is written")));
}

TEST(RunConfigInOtherStyle, IsLeftOutRatherThanUntrue) {
  const TemporaryFolder folder;
  convert_or_fail(documents_request(golden_path("hf/llama3/hf"), folder / "in", "torch_dist"));
  folder.put("in/iter_0000000/run_config.yaml", "model: {tensor_model_parallel_size: 7}\n");
  const auto done = convert_now(documents_request(folder / "in", folder / "out", "torch_dist"));
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_FALSE(std::filesystem::exists(folder / "out/iter_0000000/run_config.yaml"));
  EXPECT_THAT(done->notes, testing::Contains(HasSubstr("run_config.yaml is left out")));
}

}  // namespace
}  // namespace shardwright
