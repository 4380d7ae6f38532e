// SPDX-License-Identifier: Apache-2.0
// Adapters merged into models that are small enough to compute by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/endian.h"
#include "codec/json_text.h"
#include "codec/safetensors_header.h"
#include "convert/golden.h"
#include "tensor/bfloat16.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::merged_adapter {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct Values {
  TensorDesc desc;
  std::vector<float> values;
};

std::string bytes_of(const Values& tensor) {
  std::string bytes;
  for (const float value : tensor.values) {
    if (tensor.desc.dtype == DType::kBF16) {
      append_le(bytes, bf16_from_f32(value));
    } else {
      append_le(bytes, std::bit_cast<std::uint32_t>(value));
    }
  }
  return bytes;
}

void put_tensors(const TemporaryFolder& folder, const std::string& name,
                 const std::vector<Values>& tensors) {
  std::vector<TensorDesc> descs;
  for (const Values& tensor : tensors) descs.push_back(tensor.desc);
  const SafetensorsLayout layout = layout_safetensors(descs).value();
  std::string file = layout.header;
  file.resize(layout.file_bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string bytes = bytes_of(tensors[i]);
    ASSERT_EQ(bytes.size(), layout.ranges[i].length);
    file.replace(layout.ranges[i].offset, bytes.size(), bytes);
  }
  folder.put(name, file);
}

const std::string kPrefix = "base_model.model.";

class Adapter : public testing::Test {
 protected:
  void put_base(const std::vector<Values>& tensors,
                const std::string& config = R"({"tie_word_embeddings": false})") {
    put_tensors(folder_, "base/model.safetensors", tensors);
    folder_.put("base/config.json", config);
  }
  void put_adapter(const std::vector<Values>& tensors, const std::string& more = "") {
    std::vector<Values> named = tensors;
    for (Values& tensor : named) tensor.desc.name = kPrefix + tensor.desc.name;
    put_tensors(folder_, "adapter/adapter_model.safetensors", named);
    folder_.put("adapter/adapter_config.json",
                R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2)" + more + "}");
  }
  // A linear of two outputs and two inputs: 1 2 / 3 4, to which 2 * (5, 7) x (1, 10) is added.
  void put_linear(DType dtype = DType::kF32, const std::string& more = "") {
    put_base({{{"q.weight", dtype, {2, 2}}, {1, 2, 3, 4}}});
    put_adapter({a("q", {1, 10}), b("q", {5, 7})}, more);
  }
  static Values a(const std::string& module, const std::vector<float>& values) {
    return {{module + ".lora_A.weight", DType::kF32, {1, std::ssize(values)}}, values};
  }
  static Values b(const std::string& module, const std::vector<float>& values) {
    return {{module + ".lora_B.weight", DType::kF32, {std::ssize(values), 1}}, values};
  }
  [[nodiscard]] ConvertRequest request() const {
    ConvertRequest request;
    request.input = folder_ / "base";
    request.adapter = folder_ / "adapter";
    request.output = folder_ / "out";
    request.format = "hf";
    return request;
  }
  PreparedConversion merge(const ConvertRequest& request) {
    auto merged = convert_now(request);
    EXPECT_TRUE(merged) << merged.error().text();
    if (merged) tensors_ = read_all_tensors(request.output).value();
    return merged ? std::move(*merged) : PreparedConversion{};
  }
  [[nodiscard]] Error refusal(const ConvertRequest& request) const {
    const auto prepared = prepare_conversion(request);
    EXPECT_FALSE(prepared);
    EXPECT_FALSE(std::filesystem::exists(request.output));
    return prepared ? Error{} : prepared.error();
  }
  std::vector<float> floats(const std::string& name) {
    const TensorBytes& tensor = tensors_.at(name);
    std::vector<float> values;
    const auto* bytes = reinterpret_cast<const std::byte*>(tensor.bytes.data());
    for (std::size_t i = 0; i < tensor.bytes.size();) {
      if (tensor.dtype == DType::kBF16) {
        values.push_back(f32_from_bf16(load_le<std::uint16_t>(bytes + i)));
        i += 2;
      } else {
        values.push_back(std::bit_cast<float>(load_le<std::uint32_t>(bytes + i)));
        i += 4;
      }
    }
    return values;
  }
  [[nodiscard]] nlohmann::json config() const {
    return parse_json(folder_.get("out/config.json"), "config.json").value();
  }

  TemporaryFolder folder_;
  TensorMap tensors_;
};

TEST_F(Adapter, IsAddedScaled) {
  put_linear();
  const PreparedConversion merged = merge(request());
  EXPECT_THAT(floats("q.weight"), ElementsAre(11, 102, 17, 144));
  EXPECT_EQ(tensors_.size(), 1U);
  EXPECT_THAT(merged.notes, Contains(HasSubstr("LoRA adapter")));
  EXPECT_EQ(folder_.get("out/config.json"), folder_.get("base/config.json"));
}

TEST_F(Adapter, IsRoundedOnceToTheBasesType) {
  // 1 + 2^-9 * 2 = 1 + 2^-8, half way between two of bfloat16: to even, whereas rounding the
  // products first would not change that; 3 + 2^-7 * 2 = 3 + 2^-6 is one.
  put_base({{{"q.weight", DType::kBF16, {1, 2}}, {1, 3}}});
  put_adapter({a("q", {0x1p-9F, 0x1p-7F}), b("q", {1})});
  merge(request());
  EXPECT_EQ(tensors_.at("q.weight").dtype, DType::kBF16);
  EXPECT_THAT(floats("q.weight"), ElementsAre(1, 3 + 0x1p-6F));
  ConvertRequest wide = request();
  wide.output = folder_ / "wide";
  wide.dtype = DType::kF32;
  merge(wide);
  EXPECT_THAT(floats("q.weight"), ElementsAre(1 + 0x1p-8F, 3 + 0x1p-6F));
}

TEST_F(Adapter, RsLoraScalesByTheRoot) {
  put_base({{{"q.weight", DType::kF32, {1, 1}}, {1}}});
  const std::vector<float> ones(4, 1);
  put_adapter({{{"q.lora_A.weight", DType::kF32, {4, 1}}, ones},
               {{"q.lora_B.weight", DType::kF32, {1, 4}}, ones}},
              R"(, "rank_pattern": {"q": 4}, "use_rslora": true)");
  merge(request());
  EXPECT_THAT(floats("q.weight"), ElementsAre(1 + 4 * (2 / 2)));
}

// Rows 3 4 and 0 2 have the lengths 5 and 2.
TEST_F(Adapter, DoraScalesRows) {
  put_base({{{"q.weight", DType::kF32, {2, 2}}, {1, 4, -2, 2}}});
  put_adapter(
      {a("q", {1, 0}), b("q", {1, 1}), {{"q.lora_magnitude_vector", DType::kF32, {2}}, {10, 3}}},
      R"(, "use_dora": true)");
  const PreparedConversion merged = merge(request());
  EXPECT_THAT(floats("q.weight"), ElementsAre(6, 8, 0, 3));
  EXPECT_THAT(merged.notes, Contains(HasSubstr("DoRA adapter")));
  put_base({{{"q.weight", DType::kF32, {2, 2}}, {-2, 0, 1, 1}}});
  ConvertRequest again = request();
  again.output = folder_ / "again";
  EXPECT_EQ(refusal(again).code, Code::kValueOverflow);
  EXPECT_THAT(refusal(again).message, HasSubstr("q.weight: the weights of output 0"));
}

// [inputs, outputs], as GPT-2's Conv1D has it: 1 2 / 3 4 plus 2 * (1, 10)^T x (5, 7).
TEST_F(Adapter, TransposedWeights) {
  put_base({{{"c.weight", DType::kF32, {2, 2}}, {1, 2, 3, 4}}});
  put_adapter({a("c", {1, 10}), b("c", {5, 7})}, R"(, "fan_in_fan_out": true)");
  merge(request());
  EXPECT_THAT(floats("c.weight"), ElementsAre(11, 16, 103, 144));
}

// PEFT goes by a module's class, whatever the flag says: Llama has linears, GPT-2 Conv1Ds.
TEST_F(Adapter, SquareWeightsLieAsTheFamilyHasThem) {
  const std::string q = "model.layers.0.self_attn.q_proj";
  put_base({{{q + ".weight", DType::kF32, {2, 2}}, {1, 2, 3, 4}}},
           R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})");
  put_adapter({a(q, {1, 10}), b(q, {5, 7})}, R"(, "fan_in_fan_out": true)");
  merge(request());
  EXPECT_THAT(floats(q + ".weight"), ElementsAre(11, 102, 17, 144));
  const std::string proj = "h.3.attn.c_proj";
  put_base({{{proj + ".weight", DType::kF32, {2, 2}}, {1, 2, 3, 4}}},
           R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})");
  put_adapter({a(proj, {1, 10}), b(proj, {5, 7})}, R"(, "fan_in_fan_out": false)");
  ConvertRequest again = request();
  again.output = folder_ / "again";
  merge(again);
  EXPECT_THAT(floats(proj + ".weight"), ElementsAre(11, 16, 103, 144));
}

TEST_F(Adapter, TransposedWeightsWithDora) {
  // Columns after adding: 3 4 and 0 2.
  put_base({{{"c.weight", DType::kF32, {2, 2}}, {1, -2, 4, 2}}});
  put_adapter(
      {a("c", {1, 0}), b("c", {1, 1}), {{"c.lora_magnitude_vector", DType::kF32, {2}}, {10, 3}}},
      R"(, "fan_in_fan_out": true, "use_dora": true)");
  merge(request());
  EXPECT_THAT(floats("c.weight"), ElementsAre(6, 0, 8, 3));
}

TEST_F(Adapter, WholeTensorsGetTheBasesType) {
  put_base(
      {{{"q.weight", DType::kBF16, {1, 1}}, {1}}, {{"score.weight", DType::kBF16, {2}}, {1, 2}}});
  put_adapter({a("q", {1}), b("q", {1}), {{"score.weight", DType::kF32, {2}}, {8, 1 + 0x1p-9F}}},
              R"(, "modules_to_save": ["score"])");
  const PreparedConversion merged = merge(request());
  EXPECT_EQ(tensors_.at("score.weight").dtype, DType::kBF16);
  EXPECT_THAT(floats("score.weight"), ElementsAre(8, 1));
  EXPECT_THAT(floats("q.weight"), ElementsAre(3));
  EXPECT_THAT(merged.notes, Contains(HasSubstr("from it come score.weight")));
}

TEST_F(Adapter, BiasesOfItsOwn) {
  put_base({{{"q.weight", DType::kF32, {2, 1}}, {1, 1}}, {{"q.bias", DType::kF32, {2}}, {1, 2}}});
  put_adapter({a("q", {0}), b("q", {0, 0}), {{"q.lora_B.bias", DType::kF32, {2}}, {3, 4}}},
              R"(, "lora_bias": true)");
  merge(request());
  EXPECT_THAT(floats("q.bias"), ElementsAre(7, 10));
  EXPECT_THAT(floats("q.weight"), ElementsAre(1, 1));
}

const char* const kTied = R"({"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": true})";

// A classifier is trained on a model that has tokens for its output.
TEST_F(Adapter, TheHeadOfAClassifierComesInTheOutputLayersPlace) {
  const Values q{{"model.q.weight", DType::kBF16, {1, 1}}, {1}};
  const Values score{{"score.weight", DType::kF32, {3, 2}}, {1, 2, 3, 4, 5, 6}};
  const std::string task =
      R"(, "modules_to_save": ["classifier", "score"], "task_type": "SEQ_CLS")";
  const auto put = [&](const std::string& more, const std::vector<Values>& head) {
    put_base({q, {{"lm_head.weight", DType::kBF16, {4, 2}}, std::vector<float>(8, 9)}},
             R"({"architectures": ["LlamaForCausalLM"], "a": 1})");
    std::vector<Values> tensors = {a("model.q", {1}), b("model.q", {1})};
    tensors.insert(tensors.end(), head.begin(), head.end());
    put_adapter(tensors, more);
  };
  put(task, {score});
  const PreparedConversion merged = merge(request());
  EXPECT_EQ(tensors_.size(), 2U);
  EXPECT_THAT(floats("model.q.weight"), ElementsAre(3));
  EXPECT_THAT(floats("score.weight"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(config()["architectures"][0], "LlamaForSequenceClassification");
  EXPECT_EQ(config()["id2label"].size(), 3U);
  EXPECT_EQ(config()["a"], 1);
  EXPECT_THAT(merged.notes, Contains(HasSubstr("in the output layer's place")));
  ConvertRequest other = request();
  other.output = folder_ / "other";
  other.hf_config_dir = folder_ / "base";
  EXPECT_EQ(refusal(other).code, Code::kUsage);
  other.hf_config_dir = folder_ / "out";
  merge(other);
  EXPECT_EQ(folder_.get("other/config.json"), folder_.get("out/config.json"));

  other.hf_config_dir.clear();
  other.output = folder_ / "none";
  const Values bias{{"score.bias", DType::kF32, {2}}, {1, 2}};
  put(task, {bias});
  EXPECT_THAT(refusal(other).message, HasSubstr("expected its weight too"));
  put(task, {score, bias});
  EXPECT_EQ(refusal(other).code, Code::kShapeMismatch);
  put(task, {{{"score.weight", DType::kF32, {2, 3}}, {1, 2, 3, 4, 5, 6}}});
  EXPECT_THAT(refusal(other).message, HasSubstr("found a head on 3 numbers"));
  put(task, {{{"score.weight", DType::kF32, {0, 2}}, {}}});
  EXPECT_THAT(refusal(other).message, HasSubstr("found a head of 0 labels, expected 1 to 65536"));
  put(R"(, "modules_to_save": ["score"], "task_type": "CAUSAL_LM")", {score});
  EXPECT_THAT(refusal(other).message, HasSubstr("the base model has none"));
}

// The head of the trained model was the embedding without what was added.
TEST_F(Adapter, ATiedEmbeddingThatChangesLeavesItsHead) {
  put_base({{{"model.embed_tokens.weight", DType::kF32, {3, 1}}, {1, 2, 3}}}, kTied);
  put_adapter({{{"model.embed_tokens.lora_embedding_A", DType::kF32, {1, 3}}, {1, 0, 5}},
               {{"model.embed_tokens.lora_embedding_B", DType::kF32, {1, 1}}, {1}}});
  const PreparedConversion merged = merge(request());
  EXPECT_THAT(floats("model.embed_tokens.weight"), ElementsAre(3, 2, 13));
  EXPECT_THAT(floats("lm_head.weight"), ElementsAre(1, 2, 3));
  EXPECT_EQ(config()["tie_word_embeddings"], false);
  EXPECT_EQ(config()["architectures"][0], "LlamaForCausalLM");
  EXPECT_THAT(merged.notes, Contains(HasSubstr("tie_word_embeddings false")));
}

TEST_F(Adapter, ATiedHeadThatChangesLeavesItsEmbedding) {
  for (const bool is_stored : {false, true}) {
    std::vector<Values> base = {{{"model.embed_tokens.weight", DType::kF32, {3, 1}}, {1, 2, 3}}};
    // What no loader looks at.
    if (is_stored) base.push_back({{"lm_head.weight", DType::kF32, {3, 1}}, {9, 9, 9}});
    put_base(base, kTied);
    put_adapter({a("lm_head", {1}), b("lm_head", {5, 6, 7})});
    ConvertRequest asked = request();
    asked.output = folder_ / (is_stored ? "stored" : "bare");
    merge(asked);
    EXPECT_THAT(floats("model.embed_tokens.weight"), ElementsAre(1, 2, 3));
    EXPECT_THAT(floats("lm_head.weight"), ElementsAre(11, 14, 17));
  }
}

TEST_F(Adapter, ATiedModelThatKeepsBothStaysTied) {
  put_base({{{"model.embed_tokens.weight", DType::kF32, {3, 1}}, {1, 2, 3}},
            {{"q.weight", DType::kF32, {1, 1}}, {1}}},
           kTied);
  put_adapter({a("q", {1}), b("q", {1})});
  merge(request());
  EXPECT_EQ(config()["tie_word_embeddings"], true);
  EXPECT_EQ(tensors_.count("lm_head.weight"), 0U);
}

// As where a trainer saves the layers of one pipeline stage.
TEST_F(Adapter, OfSomeOfTheLayersIsSaid) {
  const auto merged = [&](const std::vector<std::string>& adapted, const std::string& more) {
    std::vector<Values> base;
    std::vector<Values> adapter;
    for (const std::string layer : {"0", "1", "2", "10"}) {
      base.push_back({{"l." + layer + ".q.weight", DType::kF32, {1, 1}}, {1}});
      base.push_back({{"l." + layer + ".k.weight", DType::kF32, {1, 1}}, {1}});
    }
    for (const std::string& layer : adapted) {
      adapter.push_back(a("l." + layer + ".q", {1}));
      adapter.push_back(b("l." + layer + ".q", {1}));
    }
    put_base(base);
    put_adapter(adapter, more);
    std::filesystem::remove_all(folder_ / "out");
    return merge(request()).notes;
  };
  const auto is_said = Contains(HasSubstr("lacks modules in layers 2, 10"));
  EXPECT_THAT(merged({"0", "1"}, ""), is_said);
  EXPECT_THAT(merged({"0", "1"}, R"(, "layers_to_transform": null)"), is_said);
  const auto is_silent = Not(Contains(HasSubstr("lacks modules in layers")));
  EXPECT_THAT(merged({"0", "1"}, R"(, "layers_to_transform": [0, 1])"), is_silent);
  EXPECT_THAT(merged({"0", "1", "2", "10"}, ""), is_silent);
}

// Its config lists what was trained, and no tensor of the adapter is of one of them.
TEST_F(Adapter, WhatItsConfigListsAndItLacksIsSaid) {
  const auto merged = [&](const std::string& more) {
    put_base({{{"l.0.q.weight", DType::kF32, {1, 1}}, {1}},
              {{"l.0.k.weight", DType::kF32, {1, 1}}, {1}},
              {{"l.0.mask.weight", DType::kF32, {1, 1}}, {1}},
              {{"l.0.norm.weight", DType::kF32, {1}}, {1}}});
    put_adapter({a("l.0.q", {1}), b("l.0.q", {1})}, R"(, "target_modules": )" + more);
    std::filesystem::remove_all(folder_ / "out");
    return merge(request()).notes;
  };
  EXPECT_THAT(merged(R"(["q", "k"])"), Contains(HasSubstr("has nothing of k, which its")));
  const auto is_silent = Not(Contains(HasSubstr("has nothing of")));
  EXPECT_THAT(merged(R"(["q"])"), is_silent);
  EXPECT_THAT(merged(R"(["q", "v", "norm", "ask"])"), is_silent) << "the base has no such linear";
  EXPECT_THAT(merged(R"(["q", "k"], "exclude_modules": ["k"])"), is_silent);
  EXPECT_THAT(merged(R"x(".*\\.(q|k)")x"), is_silent) << "a pattern";
}

TEST_F(Adapter, WhatItHasAndItsConfigLeavesOutIsSaid) {
  const auto merged = [&](const std::string& more) {
    put_base({{{"l.0.q.weight", DType::kF32, {1, 1}}, {1}},
              {{"l.1.q.weight", DType::kF32, {1, 1}}, {1}}});
    put_adapter({a("l.0.q", {1}), b("l.0.q", {1}), a("l.1.q", {1}), b("l.1.q", {1})}, more);
    std::filesystem::remove_all(folder_ / "out");
    return merge(request()).notes;
  };
  const auto told = [](const std::string& modules) {
    return Contains(HasSubstr("changes " + modules + ", which its"));
  };
  EXPECT_THAT(merged(R"(, "target_modules": ["k", "aq"])"), told("l.0.q, l.1.q"));
  EXPECT_THAT(merged(R"(, "layers_to_transform": [0])"), told("l.1.q"));
  EXPECT_THAT(merged(R"(, "layers_to_transform": 1)"), told("l.0.q"));
  const auto is_silent = Not(Contains(HasSubstr("leaves out")));
  EXPECT_THAT(merged(R"(, "target_modules": ["q"], "layers_to_transform": [0, 1])"), is_silent);
  EXPECT_THAT(merged(R"(, "target_modules": ["l.0.q", "1.q"])"), is_silent);
  EXPECT_THAT(merged(R"(, "target_modules": "all-linear", "layers_to_transform": null)"),
              is_silent);
  EXPECT_THAT(merged(R"(, "target_modules": ["k"], "target_parameters": ["q.weight"])"), is_silent);
}

TEST_F(Adapter, WhatIsNotSelectedIsNotAsked) {
  put_base({{{"q.weight", DType::kF32, {1, 1}}, {1}}, {{"k.weight", DType::kF32, {1, 1}}, {1}}});
  put_adapter({a("q", {1}), b("q", {1}), a("k", {1}), b("k", {1})});
  ConvertRequest some = request();
  some.include = {"k*"};
  merge(some);
  EXPECT_EQ(tensors_.size(), 1U);
  EXPECT_THAT(floats("k.weight"), ElementsAre(3));
}

TEST_F(Adapter, BasesThatNothingIsAddedTo) {
  put_linear();
  ConvertRequest asked = request();
  folder_.put("base/config.json",
              R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})");
  EXPECT_EQ(refusal(asked).code, Code::kUnsupportedFormat);
  EXPECT_THAT(refusal(asked).message, HasSubstr("bitsandbytes"));
  std::filesystem::remove(folder_ / "base/config.json");
  EXPECT_EQ(refusal(asked).code, Code::kConfigMissing);
  folder_.put("base/config.json", "{}");
  put_tensors(folder_, "base/model.safetensors",
              {{{"q.weight", DType::kU32, {2, 2}}, {1, 2, 3, 4}}});
  EXPECT_EQ(refusal(asked).code, Code::kDtypeUnsupported);
  EXPECT_THAT(refusal(asked).message, HasSubstr("q.weight: found uint32"));
  asked.input = golden_path("mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full");
  EXPECT_EQ(refusal(asked).code, Code::kUsage);
  EXPECT_THAT(refusal(asked).message, HasSubstr("convert it with --to hf first"));
}

TEST_F(Adapter, OfAnotherModelWritesNothing) {
  put_linear();
  put_adapter({a("k", {1, 10}), b("k", {5, 7})});
  EXPECT_THAT(refusal(request()).message, HasSubstr("no tensor k.weight"));
  put_adapter({a("q", {1, 10, 3}), b("q", {5, 7})});
  EXPECT_EQ(refusal(request()).code, Code::kShapeMismatch);
  std::filesystem::remove(folder_ / "adapter/adapter_config.json");
  EXPECT_EQ(refusal(request()).code, Code::kConfigMissing);
}

// The output may not be the adapter's folder, nor in it.
TEST_F(Adapter, TheAdapterIsASource) {
  put_linear();
  ConvertRequest asked = request();
  asked.output = folder_ / "adapter/out";
  const auto merged = convert_now(asked);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, Code::kTargetInsideSource);
}

// A trainer saves the next one over it meanwhile.
TEST_F(Adapter, ThatChangesMeanwhileIsRefused) {
  put_linear();
  for (const char* const file : {"adapter_model.safetensors", "adapter_config.json"}) {
    PreparedConversion prepared = prepare_conversion(request()).value();
    const std::filesystem::path path = std::filesystem::path(folder_ / "adapter") / file;
    const auto time = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, time + std::chrono::seconds(5));
    const auto merged = run_conversion(prepared, {});
    ASSERT_FALSE(merged) << file;
    EXPECT_EQ(merged.error().code, Code::kSourceChanged);
    EXPECT_THAT(merged.error().text(), HasSubstr(std::string(file) + ": changed while"));
    EXPECT_FALSE(std::filesystem::exists(request().output));
  }
}

// Eight bits multiplied out, and the product added before the one rounding: 2 * 0.5 + 2 * 3.
TEST_F(Adapter, QuantisedBasesAreMultipliedOutFirst) {
  const TensorDesc values{"q.weight", DType::kF8E4M3, {1, 1}};
  const TensorDesc scales{"q.weight_scale_inv", DType::kF32, {1, 1}};
  const SafetensorsLayout layout =
      layout_safetensors(std::vector<TensorDesc>{values, scales}).value();
  std::string file = layout.header;
  file.resize(layout.file_bytes);
  file[layout.ranges[0].offset] = 0x40;  // 2
  std::string half;
  append_le(half, std::bit_cast<std::uint32_t>(0.5F));
  file.replace(layout.ranges[1].offset, 4, half);
  folder_.put("base/model.safetensors", file);
  folder_.put("base/config.json",
              R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
                  "torch_dtype": "bfloat16"})");
  put_adapter({a("q", {1}), b("q", {3})});
  EXPECT_EQ(refusal(request()).code, Code::kDtypeUnsupported);
  EXPECT_THAT(refusal(request()).message, HasSubstr("--dtype bfloat16"));
  ConvertRequest asked = request();
  asked.dtype = DType::kBF16;
  merge(asked);
  EXPECT_THAT(floats("q.weight"), ElementsAre(7));
}

// Pieces of the model that tensor ranks hold, fused and stacked, and back: the same bits.
TEST_F(Adapter, ThereAndBackIsTheMergedModel) {
  const std::string base = golden_path("hf/llama3/hf");
  const Checkpoint model = open_checkpoint(base).value();
  std::vector<Values> tensors;
  for (const StoredTensor& tensor : model.catalog.tensors) {
    const std::string& name = tensor.desc.name;
    if (name.find("layers.") == std::string::npos || tensor.desc.shape.size() != 2) continue;
    const std::string module = name.substr(0, name.size() - std::string(".weight").size());
    std::vector<float> in;
    std::vector<float> out;
    for (std::int64_t i = 0; i < tensor.desc.shape[1]; ++i) {
      in.push_back(std::sin(static_cast<float>(i + std::ssize(tensors))));
    }
    for (std::int64_t i = 0; i < tensor.desc.shape[0]; ++i) {
      out.push_back(std::cos(static_cast<float>(3 * i)) / 16);
    }
    tensors.push_back(a(module, in));
    tensors.push_back(b(module, out));
    if (name.find("q_proj") == std::string::npos) continue;
    tensors.back().desc.dtype = DType::kBF16;
  }
  ASSERT_GT(tensors.size(), 20U);
  put_adapter(tensors);
  ConvertRequest asked = request();
  asked.input = base;
  merge(asked);
  const TensorMap merged = tensors_;
  EXPECT_NE(difference(merged, read_all_tensors(base).value()), "");
  for (const char* format : {"torch_dist", "legacy", "dcp"}) {
    asked.format = format;
    asked.output = folder_ / format;
    if (asked.format != "dcp") asked.parallel = {2, 1, 1, 1, 2};
    if (asked.format == "dcp") asked.parallel = {};
    const auto written = convert_now(asked);
    ASSERT_TRUE(written) << written.error().text();
    ConvertRequest back;
    back.input = asked.output;
    back.output = folder_ / (std::string(format) + "-hf");
    back.format = "hf";
    back.hf_config_dir = base;
    const auto returned = convert_now(back);
    ASSERT_TRUE(returned) << format << ": " << returned.error().text();
    EXPECT_EQ(difference(read_all_tensors(back.output).value(), merged), "") << format;
  }
}

}  // namespace
}  // namespace shardwright::merged_adapter
