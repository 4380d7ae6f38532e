// SPDX-License-Identifier: Apache-2.0
// Models taken apart and put together: golden files of transformers, and a Gemma 3 made here, whose
// files had three ways to name their tensors.
#include "shardwright/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "canonical/families.h"
#include "codec/json_text.h"
#include "convert/golden.h"
#include "model/built_in_models.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::uint64_t kOneShard = std::uint64_t{1} << 40;

Json config_at(const std::string& folder) {
  return parse_json(read_file(folder + "/config.json"), "config.json").value();
}

std::vector<TensorDesc> descs_at(const std::string& folder) {
  return descs_of(open_checkpoint(folder).value().catalog);
}

const Json kGemmaConfig = {
    {"architectures", {"Gemma3ForConditionalGeneration"}},
    {"model_type", "gemma3"},
    {"mm_tokens_per_image", 4},
    {"tie_word_embeddings", true},
    {"text_config",
     {{"model_type", "gemma3_text"},
      {"hidden_size", 8},
      {"intermediate_size", 12},
      {"num_hidden_layers", 2},
      {"num_attention_heads", 2},
      {"num_key_value_heads", 1},
      {"head_dim", 4},
      {"vocab_size", 16},
      {"layer_types", {"sliding_attention", "full_attention"}},
      {"sliding_window", 8},
      {"hidden_activation", "gelu_pytorch_tanh"},
      {"rms_norm_eps", 1e-6},
      {"max_position_embeddings", 64}}},
    {"vision_config",
     {{"model_type", "siglip_vision_model"},
      {"hidden_size", 6},
      {"intermediate_size", 10},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 2},
      {"num_channels", 3},
      {"patch_size", 2},
      {"image_size", 4}}},
};

// What transformers calls the three parts; written by hand.
struct GemmaNames {
  std::string language = "model.language_model.";
  std::string tower = "model.vision_tower.";
  std::string projector = "model.multi_modal_projector.";
};

std::vector<TensorDesc> gemma(const GemmaNames& names) {
  std::vector<TensorDesc> descs;
  const auto add = [&](const std::string& name, Dims shape) {
    descs.push_back({name, DType::kBF16, shape});
  };
  add(names.language + "embed_tokens.weight", {16, 8});
  for (const char* layer : {"layers.0.", "layers.1."}) {
    const std::string at = names.language + layer;
    for (const char* norm :
         {"input_layernorm.weight", "post_attention_layernorm.weight",
          "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"}) {
      add(at + norm, {8});
    }
    add(at + "self_attn.q_proj.weight", {8, 8});
    add(at + "self_attn.k_proj.weight", {4, 8});
    add(at + "self_attn.v_proj.weight", {4, 8});
    add(at + "self_attn.o_proj.weight", {8, 8});
    add(at + "self_attn.q_norm.weight", {4});
    add(at + "self_attn.k_norm.weight", {4});
    add(at + "mlp.gate_proj.weight", {12, 8});
    add(at + "mlp.up_proj.weight", {12, 8});
    add(at + "mlp.down_proj.weight", {8, 12});
  }
  add(names.language + "norm.weight", {8});
  add(names.tower + "embeddings.patch_embedding.weight", {6, 3, 2, 2});
  add(names.tower + "embeddings.patch_embedding.bias", {6});
  add(names.tower + "embeddings.position_embedding.weight", {4, 6});
  const std::string block = names.tower + "encoder.layers.0.";
  for (const char* norm : {"layer_norm1", "layer_norm2"}) {
    add(block + norm + ".weight", {6});
    add(block + norm + ".bias", {6});
  }
  for (const char* linear : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
    add(block + "self_attn." + linear + ".weight", {6, 6});
    add(block + "self_attn." + linear + ".bias", {6});
  }
  add(block + "mlp.fc1.weight", {10, 6});
  add(block + "mlp.fc1.bias", {10});
  add(block + "mlp.fc2.weight", {6, 10});
  add(block + "mlp.fc2.bias", {6});
  add(names.tower + "post_layernorm.weight", {6});
  add(names.tower + "post_layernorm.bias", {6});
  add(names.projector + "mm_soft_emb_norm.weight", {6});
  add(names.projector + "mm_input_projection_weight", {6, 8});
  return descs;
}

SplitRequest to_split(const std::string& input, const std::string& output) {
  SplitRequest request;
  request.input = input;
  request.output = output;
  return request;
}

MergeRequest to_merge(const std::string& parts, const std::string& output,
                      const std::string& config) {
  MergeRequest request;
  request.output = output;
  for (const char* name : {"language", "images", "adapter"}) {
    if (fs::exists(parts + "/" + name)) request.parts.push_back({name, parts + "/" + name});
  }
  request.config = config;
  return request;
}

void split_now(const SplitRequest& request) {
  const auto prepared = prepare_split(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const auto run = run_conversion(prepared->conversion, {});
  ASSERT_TRUE(run) << run.error().text();
}

void merge_now(const MergeRequest& request) {
  const auto prepared = prepare_merge(request);
  ASSERT_TRUE(prepared) << prepared.error().text();
  for (const MergeFinding& finding : prepared->report.findings) {
    EXPECT_NE(finding.severity, Severity::kError) << finding.kind << ": " << finding.text;
  }
  ASSERT_TRUE(prepared->conversion);
  const auto run = run_conversion(*prepared->conversion, {});
  ASSERT_TRUE(run) << run.error().text();
}

// The findings of one kind: `part: text [names]`.
std::vector<std::string> findings(const MergeRequest& request, std::string_view kind) {
  std::vector<std::string> texts;
  const auto prepared = prepare_merge(request);
  if (!prepared) return {prepared.error().text()};
  for (const MergeFinding& finding : prepared->report.findings) {
    if (finding.kind != kind) continue;
    texts.push_back(fmt::format("{}: {}", finding.part, finding.text));
    for (const std::string& name : finding.tensors) texts.back() += " " + name;
  }
  EXPECT_NE(prepared->report.has_errors(), prepared->conversion.has_value());
  EXPECT_FALSE(fs::exists(request.output));
  return texts;
}

void expect_same_files(const std::string& got, const std::string& expected) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(expected)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(read_file(got + "/" + name) == read_file(entry.path())) << name;
    ++files;
  }
  for (const auto& entry : fs::directory_iterator(got)) {
    EXPECT_TRUE(fs::exists(expected / entry.path().filename())) << entry.path();
  }
  EXPECT_GT(files, 1U);
}

// Each index lists the keys that its files hold, and no other.
void expect_right_index(const std::string& folder) {
  const Json map = parse_json(read_file(folder + "/model.safetensors.index.json"), "index")
                       .value()["weight_map"];
  std::map<std::string, std::string> stored;
  const Checkpoint checkpoint = open_checkpoint(folder).value();
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    stored[tensor.desc.name] = checkpoint.catalog.files[tensor.chunks.file(0)];
  }
  EXPECT_EQ((map.get<std::map<std::string, std::string>>()), stored);
}

class Parts : public testing::TestWithParam<std::string> {
 protected:
  // The model's folder: a golden one, or a Gemma 3 with the names that the parameter says.
  std::string model() {
    const std::string& name = GetParam();
    if (!name.starts_with("gemma3")) return golden_path("hf/" + name + "/hf");
    GemmaNames names;
    if (name == "gemma3_old") {
      names = {"language_model.model.", "vision_tower.vision_model.", "multi_modal_projector."};
    }
    put_model(out_ / "gemma", kGemmaConfig.dump(2) + "\n", gemma(names));
    return out_ / "gemma";
  }

  TemporaryFolder out_;
};

TEST_P(Parts, AreTakenApartAndPutTogether) {
  const std::string whole = model();
  ASSERT_NO_FATAL_FAILURE(split_now(to_split(whole, out_ / "parts")));
  for (const char* part : {"language", "images", "adapter"}) {
    const std::string folder = out_ / (std::string("parts/") + part);
    EXPECT_GT(descs_at(folder).size(), 1U);
    for (const TensorDesc& desc : descs_at(folder)) {
      EXPECT_THAT(desc.name, testing::Not(testing::AnyOf(HasSubstr("visual."), HasSubstr("tower"),
                                                         HasSubstr("language_model."))));
    }
  }
  EXPECT_EQ(config_at(out_ / "parts/language"), config_at(whole)["text_config"]);
  EXPECT_EQ(config_at(out_ / "parts/images"), config_at(whole)["vision_config"]);

  MergeRequest merge = to_merge(out_ / "parts", out_ / "merged", out_ / "parts/model");
  merge.max_shard_bytes = kOneShard;
  ASSERT_NO_FATAL_FAILURE(merge_now(merge));
  expect_same_files(out_ / "merged", whole);
}

TEST_P(Parts, NeedTheConfigOnlyAndFitIntoManyFiles) {
  const std::string whole = model();
  SplitRequest split = to_split(whole, out_ / "parts");
  split.max_shard_bytes = 20'000;
  if (GetParam().starts_with("gemma3")) split.max_shard_bytes = 500;
  ASSERT_NO_FATAL_FAILURE(split_now(split));
  expect_right_index(out_ / "parts/language");
  MergeRequest merge = to_merge(out_ / "parts", out_ / "merged", whole + "/config.json");
  merge.max_shard_bytes = split.max_shard_bytes;
  ASSERT_NO_FATAL_FAILURE(merge_now(merge));
  expect_right_index(out_ / "merged");
  EXPECT_EQ(read_file(out_ / "merged/config.json"), read_file(whole + "/config.json"));
  const TensorMap expected = read_all_tensors(whole).value();
  EXPECT_EQ(difference(read_all_tensors(out_ / "merged").value(), expected), "");
}

TEST_P(Parts, ThatAreMissingAreListedAndMayBeLeftOutOnRequestOnly) {
  const std::string whole = model();
  ASSERT_NO_FATAL_FAILURE(split_now(to_split(whole, out_ / "parts")));
  const std::vector<TensorDesc> adapter = descs_at(out_ / "parts/adapter");
  fs::rename(out_ / "parts/adapter", out_ / "adapter");
  for (const char* config : {"/config.json", "/model"}) {
    const std::string place =
        std::string(config) == "/model" ? out_ / "parts/model" : whole + "/config.json";
    MergeRequest merge = to_merge(out_ / "parts", out_ / "merged", place);
    const std::vector<std::string> missing = findings(merge, "missing");
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_THAT(missing[0], HasSubstr(fmt::format("adapter: found {} tensors", adapter.size())));
    EXPECT_THAT(missing[0], HasSubstr("give --component adapter=DIR"));
    for (const TensorDesc& desc : adapter) {
      EXPECT_THAT(missing[0], HasSubstr(desc.name.substr(desc.name.find('.'))));
    }
    merge.without = {"adapter"};
    EXPECT_THAT(findings(merge, "missing"), ElementsAre(HasSubstr("left out (--without adapter)")));
    ASSERT_NO_FATAL_FAILURE(merge_now(merge));
    EXPECT_EQ(descs_at(out_ / "merged").size(), descs_at(whole).size() - adapter.size());
    fs::remove_all(out_ / "merged");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Parts,
                         testing::Values("qwen25_vl", "qwen3_vl", "qwen35_vl", "gemma3",
                                         "gemma3_old"),
                         [](const auto& test) { return test.param; });

/// Parts of a Qwen3-VL, to be spoilt.
class MergeOfParts : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(split_now(to_split(whole_, out_ / "parts")));
    merge_ = to_merge(out_ / "parts", out_ / "merged", whole_);
  }

  // Writes a part anew with other tensors.
  void rewrite(const std::string& part, const std::vector<TensorDesc>& descs) {
    const std::string folder = out_ / ("parts/" + part);
    const Json config = fs::exists(folder + "/config.json") ? config_at(folder) : Json();
    put_model(out_ / ("parts/" + part), config.is_null() ? "" : config.dump(2) + "\n", descs);
  }
  void edit_config(const std::string& part, const std::function<void(Json&)>& edit) {
    Json config = config_at(out_ / ("parts/" + part));
    edit(config);
    out_.put("parts/" + part + "/config.json", config.dump());
  }
  // The whole model's config, changed.
  void edit_whole(const std::function<void(Json&)>& edit) {
    Json config = config_at(whole_);
    edit(config);
    out_.put("whole/config.json", config.dump());
    merge_.config = out_ / "whole";
  }
  std::vector<TensorDesc> descs(const std::string& part) {
    return descs_at(out_ / ("parts/" + part));
  }

  const std::string whole_ = golden_path("hf/qwen3_vl/hf");
  TemporaryFolder out_;
  MergeRequest merge_;
};

TEST_F(MergeOfParts, TakesNamesOfTheWholeModelToo) {
  std::vector<TensorDesc> images = descs("images");
  for (TensorDesc& desc : images) desc.name = "model.visual." + desc.name;
  rewrite("images", images);
  std::vector<TensorDesc> language = descs("language");
  for (TensorDesc& desc : language) {
    if (desc.name.starts_with("model.")) {
      desc.name = "model.language_model." + desc.name.substr(6);
    }
  }
  rewrite("language", language);
  EXPECT_THAT(findings(merge_, "unexpected"), ElementsAre());
  ASSERT_NO_FATAL_FAILURE(merge_now(merge_));
  EXPECT_EQ(descs_at(out_ / "merged").size(), descs_at(whole_).size());
}

TEST_F(MergeOfParts, LetsTheEncoderBringItsAdapter) {
  std::vector<TensorDesc> images = descs("images");
  for (const TensorDesc& desc : descs("adapter")) images.push_back(desc);
  rewrite("images", images);
  EXPECT_THAT(findings(merge_, "doubled"),
              ElementsAre(testing::AllOf(HasSubstr("adapter: found"), HasSubstr("images ("),
                                         HasSubstr("model.visual.merger.linear_fc1.weight"))));
  merge_.parts.pop_back();
  EXPECT_THAT(findings(merge_, "missing"), ElementsAre());
  ASSERT_NO_FATAL_FAILURE(merge_now(merge_));
}

TEST_F(MergeOfParts, NamesWhatDoesNotBelong) {
  std::vector<TensorDesc> images = descs("images");
  images.push_back({"inv_freq", DType::kF32, {4}});
  rewrite("images", images);
  EXPECT_THAT(findings(merge_, "unexpected"),
              ElementsAre(testing::AllOf(HasSubstr("images: found 1 tensors"),
                                         HasSubstr("model.visual.inv_freq"))));
}

TEST_F(MergeOfParts, ChecksShapesAgainstTheConfig) {
  edit_whole([](Json& config) { config["text_config"]["vocab_size"] = 640; });
  EXPECT_THAT(findings(merge_, "shape"),
              Contains(testing::AllOf(HasSubstr("embed_tokens"), HasSubstr("640"))));
  edit_whole([](Json& config) { config["vision_config"]["out_hidden_size"] = 96; });
  EXPECT_THAT(findings(merge_, "width"),
              ElementsAre(HasSubstr("adapter: config.json: found an output width of 96, expected "
                                    "the language model's hidden size 64")));
  EXPECT_THAT(findings(merge_, "shape"), Contains(HasSubstr("96")));
}

TEST_F(MergeOfParts, ComparesThePartsOwnConfigs) {
  EXPECT_THAT(findings(merge_, "config"), ElementsAre());
  edit_config("language", [](Json& config) {
    config["rope_parameters"]["rope_theta"] = 10000.0;
    config["rms_norm_eps"] = 1e-5;
    config["model_type"] = "qwen3";
    config["hidden_size"] = 64.0;
  });
  EXPECT_THAT(
      findings(merge_, "config"),
      ElementsAre(testing::AllOf(
          HasSubstr("language: its own config.json"), HasSubstr("rms_norm_eps 1e-05 (here 1e-06)"),
          HasSubstr("rope.theta 10000 (here 500000)"), testing::Not(HasSubstr("model_type")),
          testing::Not(HasSubstr("hidden_size")))));
}

TEST_F(MergeOfParts, TellsWhereTypesDiffer) {
  EXPECT_THAT(findings(merge_, "dtype"), ElementsAre());
  std::vector<TensorDesc> images = descs("images");
  for (TensorDesc& desc : images) desc.dtype = DType::kF32;
  rewrite("images", images);
  EXPECT_THAT(findings(merge_, "dtype"),
              ElementsAre(HasSubstr("language bfloat16, images float32, adapter bfloat16")));
  ASSERT_NO_FATAL_FAILURE(merge_now(merge_));
}

// A tied language model in a model that is not: its head is its embedding.
TEST_F(MergeOfParts, CopiesTheEmbeddingOfATiedLanguageModel) {
  std::vector<TensorDesc> language = descs("language");
  std::erase_if(language, [](const TensorDesc& d) { return d.name == "lm_head.weight"; });
  rewrite("language", language);
  EXPECT_THAT(findings(merge_, "missing"), ElementsAre(HasSubstr("lm_head.weight")))
      << "nothing says that it is tied";
  edit_config("language", [](Json& config) { config["tie_word_embeddings"] = true; });
  EXPECT_THAT(findings(merge_, "tied"),
              ElementsAre(HasSubstr("lm_head.weight is written as a copy")));
  ASSERT_NO_FATAL_FAILURE(merge_now(merge_));
  const TensorMap merged = read_all_tensors(out_ / "merged").value();
  EXPECT_EQ(merged.at("lm_head.weight").bytes,
            merged.at("model.language_model.embed_tokens.weight").bytes);
}

TEST_F(MergeOfParts, RefusesAHeadThatLoadingWouldLose) {
  edit_whole([](Json& config) {
    config["tie_word_embeddings"] = true;
    config["text_config"]["tie_word_embeddings"] = true;
  });
  EXPECT_THAT(findings(merge_, "tied"),
              ElementsAre(HasSubstr("lm_head.weight differs from the embedding")));
  merge_.parts.pop_back();
  merge_.without = {"adapter"};
  EXPECT_THAT(findings(merge_, "tied"),
              ElementsAre(HasSubstr("lm_head.weight differs from the embedding")))
      << "a part is left out";
}

// The example's files have the older names; transformers 5 writes the newer ones.
class TiedHeads : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::vector<TensorDesc> descs = descs_at(golden_);
    for (TensorDesc& desc : descs) {
      if (desc.name.starts_with("model.")) desc.name = GetParam() + desc.name.substr(6);
    }
    std::erase_if(descs, [](const TensorDesc& d) { return d.name == "lm_head.weight"; });
    put_model(out_ / "whole", config(true).dump(), descs);
    ASSERT_NO_FATAL_FAILURE(split_now(to_split(out_ / "whole", out_ / "parts")));
    for (const bool tied : {true, false}) {
      const std::string folder = tied ? "tied" : "untied";
      out_.put(folder + "/config.json", config(tied).dump());
      out_.put(folder + "/source_keys.json", read_file(out_ / "parts/model/source_keys.json"));
    }
  }
  [[nodiscard]] Json config(bool tied) const {
    Json config = config_at(golden_);
    config["tie_word_embeddings"] = tied;
    config["text_config"]["tie_word_embeddings"] = tied;
    return config;
  }
  // The head as a copy of the embedding, in a model that is tied.
  void put_repeated_head() {
    const MergeRequest untied = to_merge(out_ / "parts", out_ / "merged", out_ / "untied");
    ASSERT_NO_FATAL_FAILURE(merge_now(untied));
    out_.put("merged/config.json", config(true).dump());
  }

  const std::string golden_ = golden_path("hf/qwen25_vl/hf");
  TemporaryFolder out_;
};

TEST_P(TiedHeads, ThatRepeatTheEmbeddingAreNotStoredTwice) {
  ASSERT_NO_FATAL_FAILURE(put_repeated_head());
  ConvertRequest request;
  request.input = out_ / "merged";
  request.output = out_ / "megatron";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_THAT(converted->notes, Contains("lm_head.weight repeats " + GetParam() +
                                         "embed_tokens.weight bit by bit and is not stored twice"));
  request.input = out_ / "megatron";
  request.output = out_ / "back";
  request.format = "hf";
  ASSERT_TRUE(convert_now(request));
  EXPECT_EQ(difference(read_all_tensors(out_ / "back").value(),
                       read_all_tensors(out_ / "merged").value()),
            "");
}

TEST_P(TiedHeads, ThatDifferAreRefused) {
  std::vector<TensorDesc> language = descs_at(out_ / "parts/language");
  language.push_back({"lm_head.weight", DType::kBF16, {512, 64}});
  put_model(out_ / "parts/language", "", language);
  const MergeRequest merge = to_merge(out_ / "parts", out_ / "merged", out_ / "tied");
  EXPECT_THAT(findings(merge, "tied"),
              ElementsAre(HasSubstr("lm_head.weight differs from the embedding")));
}

TEST_P(TiedHeads, AreNoPartOfALanguageModelThatSaysSo) {
  EXPECT_EQ(config_at(out_ / "parts/language")["tie_word_embeddings"], true);
  ConvertRequest request;
  request.input = out_ / "parts/language";
  request.output = out_ / "megatron";
  request.family = "qwen2";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
}

INSTANTIATE_TEST_SUITE_P(Spellings, TiedHeads, testing::Values("model.", "model.language_model."),
                         [](const auto& test) { return test.index == 0 ? "older" : "newer"; });

// What the whole model's config says at its top holds for the language model alone too.
TEST(Split, TellsTheLanguageModelWhetherItIsTied) {
  const TemporaryFolder out;
  const std::string golden = golden_path("hf/qwen3_vl/hf");
  Json config = config_at(golden);
  const auto told = [&](const Json& top, const Json& section) {
    config["tie_word_embeddings"] = top;
    config["text_config"].erase("tie_word_embeddings");
    if (!section.is_null()) config["text_config"]["tie_word_embeddings"] = section;
    std::vector<TensorDesc> descs = descs_at(golden);
    if (top == true) {
      std::erase_if(descs, [](const TensorDesc& d) { return d.name == "lm_head.weight"; });
    }
    fs::remove_all(out / "parts");
    put_model(out / "whole", config.dump(), descs);
    split_now(to_split(out / "whole", out / "parts"));
    const MergeRequest merge = to_merge(out / "parts", out / "merged", out / "parts/model");
    EXPECT_THAT(findings(merge, "config"), ElementsAre());
    return config_at(out / "parts/language").value("tie_word_embeddings", Json("absent"));
  };
  EXPECT_EQ(told(true, Json()), true);
  EXPECT_EQ(told(true, false), true) << "the top decides";
  EXPECT_EQ(told(false, Json()), "absent") << "nothing to correct";
  EXPECT_EQ(told(false, true), false);
}

const Json kFp8 = {
    {"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"weight_block_size", {128, 128}}};

// A Qwen3-VL whose language model has a weight of fp8 with its scales.
void put_fp8_model(const std::string& folder) {
  const std::string golden = golden_path("hf/qwen3_vl/hf");
  Json config = config_at(golden);
  config["quantization_config"] = kFp8;
  std::vector<TensorDesc> descs = descs_at(golden);
  const std::string weight = "model.language_model.layers.0.self_attn.q_proj.weight";
  std::ranges::find(descs, weight, &TensorDesc::name)->dtype = DType::kF8E4M3;
  descs.push_back({weight + "_scale_inv", DType::kF32, {1, 1}});
  put_model(folder, config.dump(2) + "\n", descs);
}

TEST(Split, TellsAQuantisedPartWhatItsScalesAre) {
  const TemporaryFolder out;
  put_fp8_model(out / "whole");
  ASSERT_NO_FATAL_FAILURE(split_now(to_split(out / "whole", out / "parts")));
  EXPECT_EQ(config_at(out / "parts/language").value("quantization_config", Json()), kFp8);
  EXPECT_FALSE(config_at(out / "parts/images").contains("quantization_config"));
  ConvertRequest request;
  request.input = out / "parts/language";
  request.output = out / "plain";
  request.format = "hf";
  request.dtype = DType::kBF16;
  request.family = "qwen3";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
  EXPECT_FALSE(config_at(out / "plain").contains("quantization_config"));

  MergeRequest merge = to_merge(out / "parts", out / "merged", out / "parts/model");
  merge.max_shard_bytes = kOneShard;
  ASSERT_NO_FATAL_FAILURE(merge_now(merge));
  expect_same_files(out / "merged", out / "whole");
}

// Packed values of methods that we don't read are known by their types.
TEST(Split, TellsPartsOfAnyQuantisation) {
  const TemporaryFolder out;
  for (const DType packed : {DType::kI32, DType::kI8, DType::kU8}) {
    Json config = kGemmaConfig;
    config["quantization_config"] = {{"quant_method", "awq"}};
    std::vector<TensorDesc> descs = gemma({});
    descs.push_back({"model.language_model.layers.0.mlp.up_proj.qweight", packed, {8}});
    descs.push_back({"model.vision_tower.post_layernorm.position_ids", DType::kI64, {4}});
    put_model(out / "whole", config.dump(), descs);
    ASSERT_NO_FATAL_FAILURE(split_now(to_split(out / "whole", out / "parts")));
    EXPECT_EQ(config_at(out / "parts/language").value("quantization_config", Json()),
              config["quantization_config"]);
    EXPECT_FALSE(config_at(out / "parts/images").contains("quantization_config"));
    fs::remove_all(out / "parts");
  }
}

TEST_F(MergeOfParts, SaysNothingOfAQuantisationThatIsGone) {
  edit_whole([](Json& config) { config["quantization_config"] = kFp8; });
  out_.put("whole/hf_quant_config.json", "{}");
  out_.put("whole/tokenizer.json", "{}");
  for (const char* place : {"whole", "whole/config.json"}) {
    merge_.config = out_ / place;
    const auto prepared = prepare_merge(merge_);
    ASSERT_TRUE(prepared && prepared->conversion);
    EXPECT_THAT(
        prepared->conversion->notes,
        Contains("config.json: quantization_config is removed: no tensor is quantised now"));
    ASSERT_NO_FATAL_FAILURE(merge_now(merge_));
    Json expected = config_at(out_ / "whole");
    expected.erase("quantization_config");
    EXPECT_EQ(config_at(out_ / "merged"), expected);
    EXPECT_FALSE(fs::exists(out_ / "merged/hf_quant_config.json"));
    EXPECT_EQ(fs::exists(out_ / "merged/tokenizer.json"), std::string(place) == "whole");
    fs::remove_all(out_ / "merged");
  }
}

TEST(Merge, KeepsWhatAQuantisedPartNeeds) {
  const TemporaryFolder out;
  put_fp8_model(out / "whole");
  out.put("whole/hf_quant_config.json", "{}");
  ASSERT_NO_FATAL_FAILURE(split_now(to_split(out / "whole", out / "parts")));
  ASSERT_NO_FATAL_FAILURE(merge_now(to_merge(out / "parts", out / "merged", out / "whole")));
  EXPECT_EQ(read_file(out / "merged/config.json"), read_file(out / "whole/config.json"));
  EXPECT_TRUE(fs::exists(out / "merged/hf_quant_config.json"));
}

TEST_F(MergeOfParts, RefusesAWholeModelAsAPart) {
  for (const std::size_t part : {0, 1, 2}) {
    MergeRequest request = merge_;
    request.parts[part].path = whole_;
    const auto prepared = prepare_merge(request);
    ASSERT_FALSE(prepared);
    EXPECT_THAT(prepared.error().text(),
                testing::AllOf(HasSubstr("--component " + request.parts[part].name + ": found"),
                               HasSubstr("language, images, adapter"), HasSubstr("split")));
  }
  std::vector<TensorDesc> two = descs_at(whole_);
  std::erase_if(two, [](const TensorDesc& d) { return d.name.contains("merger"); });
  rewrite("images", two);
  const auto prepared = prepare_merge(merge_);
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().text(), HasSubstr("found tensors of language, images in"));
}

// --overwrite replaces a folder as a whole: nothing that was read may lie in it.
TEST_F(MergeOfParts, NeverReplacesWhatItReads) {
  out_.put("place/outer/config.json", read_file(whole_ + "/config.json"));
  out_.put("place/outer/tokenizer.json", "{}");
  for (const MappingText& model : built_in_models()) {
    out_.put("place/models/" + model.name, std::string(model.json));
  }
  const auto refusal = [&](const std::string& output, const auto& edit) {
    MergeRequest request = merge_;
    request.output = out_ / output;
    request.overwrite = true;
    edit(request);
    const auto prepared = prepare_merge(request);
    EXPECT_TRUE(prepared) << prepared.error().text();
    if (!prepared || !prepared->conversion) return std::string("not prepared");
    const auto run = run_conversion(*prepared->conversion, {});
    return run ? std::string("accepted") : run.error().text();
  };
  const std::string config = out_ / "place/outer";
  const std::string file = config + "/config.json";
  const auto folder = [&](MergeRequest& request) { request.config = config; };
  const auto alone = [&](MergeRequest& request) { request.config = file; };
  EXPECT_THAT(refusal("place/outer", folder), HasSubstr("SW0110"));
  EXPECT_THAT(refusal("place", folder), HasSubstr("SW0110"));
  EXPECT_THAT(refusal("place/outer", alone), HasSubstr("SW0110"));
  EXPECT_THAT(refusal("place", alone), HasSubstr("SW0110"));
  EXPECT_THAT(
      refusal("place", [&](MergeRequest& request) { request.models_dir = out_ / "place/models"; }),
      HasSubstr("SW0110"));
  EXPECT_THAT(refusal("place",
                      [&](MergeRequest& request) {
                        request.map_files = {out_ / "place/models/qwen3_vl.json"};
                      }),
              HasSubstr("SW0110"));
  EXPECT_TRUE(fs::exists(out_ / "place/outer/tokenizer.json"));
  EXPECT_EQ(refusal("place/outer/new", folder), "accepted") << "that replaces nothing";
  EXPECT_TRUE(fs::exists(out_ / "place/outer/tokenizer.json"));
}

TEST(Convert, NeverReplacesTheConfigThatItReads) {
  const TemporaryFolder out;
  ConvertRequest request;
  request.input = golden_path("hf/qwen3/hf");
  request.output = out / "outer";
  request.format = "hf";
  request.overwrite = true;
  out.put("outer/ref/config.json", read_file(request.input + "/config.json"));
  request.hf_config_dir = out / "outer/ref";
  for (const char* output : {"outer", "outer/ref"}) {
    request.output = out / output;
    const auto converted = convert_now(request);
    ASSERT_FALSE(converted);
    EXPECT_EQ(converted.error().code, Code::kTargetInsideSource);
  }
  EXPECT_TRUE(fs::exists(out / "outer/ref/config.json"));
  request.output = out / "outer/ref/new";
  EXPECT_TRUE(convert_now(request));
}

TEST_F(MergeOfParts, RefusesWhatCantBeMeant) {
  const auto refusal = [&](const std::function<void(MergeRequest&)>& edit) {
    MergeRequest request = merge_;
    edit(request);
    const auto prepared = prepare_merge(request);
    return prepared ? std::string("accepted") : prepared.error().text();
  };
  EXPECT_THAT(refusal([](MergeRequest& r) { r.parts[1].name = "audio"; }),
              HasSubstr("--component audio: qwen3_vl has no such part; it has "
                        "language, images, adapter"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.parts[1].name = "language"; }),
              HasSubstr("--component language is given twice"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.without = {"adapter"}; }),
              HasSubstr("--without adapter contradicts --component adapter"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.without = {"audio"}; }),
              HasSubstr("--without audio: qwen3_vl has no such part"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.parts.clear(); }), HasSubstr("--component"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.config.clear(); }), HasSubstr("--config"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.parts[0].path = golden_path("mcore"); }),
              HasSubstr("SW0"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.config = golden_path("hf/qwen3/hf"); }),
              HasSubstr("family qwen3 cannot be taken apart"));
  EXPECT_THAT(refusal([](MergeRequest& r) { r.family = "qwen3"; }),
              HasSubstr("which family qwen3 needs"))
      << "--family wins";
  EXPECT_THAT(refusal([](MergeRequest& r) { r.config = "/nowhere/config.json"; }),
              HasSubstr("SW0101"));
  ConvertRequest megatron;
  megatron.input = whole_;
  megatron.output = out_ / "megatron";
  ASSERT_TRUE(convert_now(megatron));
  EXPECT_THAT(refusal([&](MergeRequest& r) { r.parts[0].path = out_ / "megatron"; }),
              HasSubstr("expected Hugging Face files; convert it with --to hf first"));
}

TEST(Split, RefusesWhatItCantTakeApart) {
  const TemporaryFolder out;
  const auto refusal = [&](const std::string& input) {
    const auto prepared = prepare_split(to_split(input, out / "x"));
    return prepared ? std::string("accepted") : prepared.error().text();
  };
  EXPECT_THAT(refusal(golden_path("hf/qwen3/hf")), HasSubstr("family qwen3 cannot be taken apart"));
  std::vector<TensorDesc> descs = gemma({});
  descs.push_back({"audio.x", DType::kBF16, {1}});
  put_model(out / "more", kGemmaConfig.dump(), descs);
  EXPECT_THAT(refusal(out / "more"), HasSubstr("belong to no part of gemma3_vl: audio.x"));
  descs.back().name = "vision_tower.post_layernorm.bias";
  put_model(out / "twice", kGemmaConfig.dump(), descs);
  EXPECT_THAT(refusal(out / "twice"),
              HasSubstr("error[SW0403]: " + (out / "twice") +
                        ": found 1 tensors for which family gemma3_vl has no rule: "
                        "vision_tower.post_layernorm.bias"));
  put_model(out / "bare", "", gemma({}));
  EXPECT_THAT(refusal(out / "bare"), HasSubstr("bare: the model's config.json is missing"));
}

// Prefixes are those of a part, what follows is another model's.
TEST(Split, RefusesWhatTheFamilyHasNoRuleFor) {
  const TemporaryFolder out;
  const auto refusal = [&](const Json& config, const std::string& from, const std::string& to) {
    std::vector<TensorDesc> descs = gemma({});
    for (TensorDesc& desc : descs) {
      if (desc.name.starts_with(from)) desc.name.replace(0, from.size(), to);
    }
    put_model(out / "whole", config.dump(), descs);
    const auto prepared = prepare_split(to_split(out / "whole", out / "x"));
    return prepared ? std::string("accepted") : prepared.error().text();
  };
  const std::string language = "model.language_model.";
  EXPECT_EQ(refusal(kGemmaConfig, "", ""), "accepted");
  EXPECT_THAT(refusal(kGemmaConfig, "model.vision_tower.", language + "vision."),
              HasSubstr("no rule: " + language + "vision.embeddings.patch_embedding.bias"));
  EXPECT_THAT(refusal(kGemmaConfig, language + "layers.1.", language + "layers.9."),
              HasSubstr("SW0403"));
  // Packed by a method that only others read: the module must be one that the family has.
  Json packed = kGemmaConfig;
  packed["quantization_config"] = {{"quant_method", "awq"}};
  const std::string module = language + "layers.0.mlp.up_proj.";
  EXPECT_EQ(refusal(packed, module + "weight", module + "qweight"), "accepted");
  EXPECT_THAT(refusal(packed, module + "weight", language + "layers.9.mlp.up_proj.qweight"),
              HasSubstr("SW0403"));
}

// The language model alone is a model of its own family.
TEST(Split, GivesALanguageModelThatConverts) {
  const TemporaryFolder out;
  ASSERT_NO_FATAL_FAILURE(split_now(to_split(golden_path("hf/qwen3_vl/hf"), out / "parts")));
  ConvertRequest request;
  request.input = out / "parts/language";
  request.output = out / "megatron";
  request.family = "qwen3";
  const auto converted = convert_now(request);
  ASSERT_TRUE(converted) << converted.error().text();
}

// Every multimodal family says what its parts are called.
TEST(Split, KnowsThePartsOfEveryFamilyWithComponents) {
  const Mappings mappings = load_all_mappings({}).value();
  for (const Mapping& mapping : mappings) {
    if (mapping.components.empty()) continue;
    std::set<std::string> parts;
    for (const ModelPart& part : mapping.parts) parts.insert(part.name);
    for (const ComponentRoute& route : mapping.components) {
      EXPECT_TRUE(parts.contains(route.name)) << mapping.family << ": no 'hf' in " << route.name;
    }
    EXPECT_TRUE(parts.contains("adapter")) << mapping.family;
  }
}

}  // namespace
}  // namespace shardwright
