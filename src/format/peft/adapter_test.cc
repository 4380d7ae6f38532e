// SPDX-License-Identifier: Apache-2.0
#include "format/peft/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/safetensors_header.h"
#include "testing/temporary_folder.h"

namespace shardwright::peft_adapter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kConfig = R"({"peft_type": "LORA", "r": 2, "modules_to_save": ["score"]})";
const std::string kPrefix = "base_model.model.";

// A folder with tensors of zeros.
void put_adapter(const TemporaryFolder& folder, const std::vector<TensorDesc>& tensors,
                 const std::string& config = kConfig) {
  const SafetensorsLayout layout = layout_safetensors(tensors).value();
  std::string bytes = layout.header;
  bytes.resize(layout.file_bytes);
  folder.put("adapter_model.safetensors", bytes);
  folder.put("adapter_config.json", config);
}

TensorDesc f32(const std::string& name, const Dims& shape) {
  return {kPrefix + name, DType::kF32, shape};
}

TEST(PeftAdapter, ModulesAndWholeTensors) {
  const TemporaryFolder folder;
  put_adapter(
      folder,
      {f32("model.q_proj.lora_A.weight", {2, 8}), f32("model.q_proj.lora_B.weight", {6, 2}),
       f32("model.q_proj.lora_B.bias", {6}), f32("model.v_proj.lora_A.default.weight", {2, 8}),
       f32("model.v_proj.lora_B.default.weight", {3, 2}),
       f32("model.embed_tokens.lora_embedding_A", {2, 30}),
       f32("model.embed_tokens.lora_embedding_B", {8, 2}),
       f32("model.embed_tokens.base_layer.weight", {30, 8}), f32("lm_head.weight", {30, 8}),
       f32("score.modules_to_save.default.weight", {2, 8})});
  const auto adapter = open_peft_adapter(folder.path());
  ASSERT_TRUE(adapter) << adapter.error().text();
  const auto name = [&](std::uint32_t i) {
    return adapter->catalog.tensors[i].desc.name.substr(kPrefix.size());
  };
  ASSERT_EQ(adapter->modules.size(), 3U);
  EXPECT_TRUE(adapter->modules[0].is_embedding);
  EXPECT_EQ(name(adapter->modules[0].in), "model.embed_tokens.lora_embedding_A");
  EXPECT_EQ(adapter->modules[1].name, "model.q_proj");
  EXPECT_EQ(name(adapter->modules[1].in), "model.q_proj.lora_A.weight");
  EXPECT_EQ(name(adapter->modules[1].out), "model.q_proj.lora_B.weight");
  EXPECT_EQ(name(adapter->modules[1].bias.value()), "model.q_proj.lora_B.bias");
  EXPECT_EQ(adapter->modules[2].name, "model.v_proj");
  EXPECT_FALSE(adapter->modules[2].bias);
  ASSERT_EQ(adapter->saved.size(), 3U);
  EXPECT_EQ(adapter->saved[0].name, "lm_head.weight");
  EXPECT_EQ(adapter->saved[1].name, "model.embed_tokens.weight");
  EXPECT_EQ(adapter->saved[2].name, "score.weight");
}

// Of FSDP and torch.compile around the model or within it, and of trainers that leave PEFT's away.
TEST(PeftAdapter, NamesThatWrappersHaveChanged) {
  for (const std::string module :
       {"_orig_mod.base_model.model.q_proj", "base_model.model._orig_mod.q_proj",
        "base_model.model._fsdp_wrapped_module.q_proj", "module.base_model.model.q_proj",
        "q_proj"}) {
    const TemporaryFolder folder;
    put_adapter(folder, {{module + ".lora_A.weight", DType::kF32, {2, 8}},
                         {module + ".lora_B.weight", DType::kF32, {6, 2}}});
    const auto adapter = open_peft_adapter(folder.path());
    ASSERT_TRUE(adapter) << adapter.error().text();
    ASSERT_EQ(adapter->modules.size(), 1U) << module;
    EXPECT_EQ(adapter->modules[0].name, "q_proj");
    EXPECT_THAT(note_on_names(*adapter), HasSubstr(module + ".lora_A.weight"));
  }
  const TemporaryFolder folder;
  put_adapter(folder, {f32("q.lora_A.weight", {2, 8}), f32("q.lora_B.weight", {6, 2})});
  EXPECT_EQ(note_on_names(open_peft_adapter(folder.path()).value()), "");
}

TEST(PeftAdapter, LengthsOfDora) {
  const char* const config = R"({"peft_type": "LORA", "r": 2, "use_dora": true})";
  for (const char* name : {"q.lora_magnitude_vector", "q.lora_magnitude_vector.default.weight"}) {
    const TemporaryFolder folder;
    put_adapter(folder,
                {f32("q.lora_A.weight", {2, 8}), f32("q.lora_B.weight", {6, 2}), f32(name, {6})},
                config);
    const auto adapter = open_peft_adapter(folder.path());
    ASSERT_TRUE(adapter) << adapter.error().text();
    EXPECT_TRUE(adapter->modules.at(0).magnitude);
  }
}

struct Refusal {
  std::vector<TensorDesc> tensors;
  Code code;
  const char* message;
};

TEST(PeftAdapter, NamesWhatDoesNotFit) {
  const TensorDesc a = f32("q.lora_A.weight", {2, 8});
  const TensorDesc b = f32("q.lora_B.weight", {6, 2});
  const Refusal cases[] = {
      {{a}, Code::kUnmatchedSource, "module q: found base_model.model.q.lora_A.weight, expected"},
      {{b}, Code::kUnmatchedSource, "module q: found base_model.model.q.lora_B.weight, expected"},
      {{a, b, f32("q.lora_embedding_A", {2, 8})}, Code::kUnmatchedSource, "module q"},
      {{a, b, f32("q.lora_E", {2, 1})}, Code::kUnmatchedSource, "q.lora_E"},
      {{a, b, f32("k.weight", {6, 8})}, Code::kUnmatchedSource, "neither of LoRA nor"},
      {{a, b, f32("q.bias", {6})}, Code::kUnmatchedSource, "q.bias"},
      {{a, b, f32("score.original_module.weight", {6, 8})},
       Code::kUnmatchedSource,
       "score.original_module"},
      {{a, b, {"q.lora_A.weight", DType::kF32, {2, 8}}}, Code::kUnmatchedSource, "q.lora_A.weight"},
      {{a, b, f32("q.lora_A.other.weight", {2, 8})}, Code::kUnmatchedSource, "other"},
      {{a, b, f32("q.lora_A.default.weight", {2, 8})}, Code::kDuplicateName, "say the same"},
      {{a, b, f32("score.weight", {1}), f32("score.modules_to_save.default.weight", {1})},
       Code::kDuplicateName,
       "say the same"},
      {{a, f32("q.lora_B.weight", {6, 3})},
       Code::kShapeMismatch,
       "q.lora_A.weight (2, 8) and base_model.model.q.lora_B.weight (6, 3) do not have the same"},
      {{f32("q.lora_A.weight", {3, 8}), f32("q.lora_B.weight", {6, 3})},
       Code::kShapeMismatch,
       "found rank 3, expected 2"},
      {{f32("q.lora_A.weight", {2, 8, 3, 3}), f32("q.lora_B.weight", {6, 2, 1, 1})},
       Code::kUnsupportedFormat,
       "of a convolution"},
      {{a, b, f32("q.lora_magnitude_vector", {6})},
       Code::kUnmatchedSource,
       "a lora_magnitude_vector, but adapter_config.json says use_dora false"},
      {{}, Code::kNothingStored, "it has no tensors of an adapter"},
  };
  for (const Refusal& each : cases) {
    const TemporaryFolder folder;
    put_adapter(folder, each.tensors);
    const auto adapter = open_peft_adapter(folder.path());
    ASSERT_FALSE(adapter) << each.message;
    EXPECT_EQ(adapter.error().code, each.code) << adapter.error().text();
    EXPECT_THAT(adapter.error().message, HasSubstr(each.message));
  }
}

TEST(PeftAdapter, BiasesAreTakenWhereTheConfigSaysSo) {
  const TemporaryFolder folder;
  put_adapter(folder,
              {f32("q.lora_A.weight", {2, 8}), f32("q.lora_B.weight", {6, 2}),
               f32("q.base_layer.bias", {6})},
              R"({"peft_type": "LORA", "r": 2, "bias": "lora_only"})");
  const auto adapter = open_peft_adapter(folder.path());
  ASSERT_TRUE(adapter) << adapter.error().text();
  EXPECT_EQ(adapter->saved.at(0).name, "q.bias");
}

// A file of a few bytes must not make millions of modules.
TEST(PeftAdapter, ExpertsAreAsManyAsModelsHave) {
  const char* const config =
      R"({"peft_type": "LORA", "r": 2, "target_parameters": ["experts.down_proj"]})";
  const auto opened = [&](const Dims& in, const Dims& out) {
    const TemporaryFolder folder;
    put_adapter(folder, {f32("experts.lora_A.weight", in), f32("experts.lora_B.weight", out)},
                config);
    return open_peft_adapter(folder.path());
  };
  const auto sound = opened({6, 5}, {4, 6});
  ASSERT_TRUE(sound) << sound.error().text();
  EXPECT_EQ(sound->modules.size(), 3U);
  ASSERT_EQ(sound->parameters.size(), 1U);
  EXPECT_EQ(sound->catalog.tensors[sound->parameters[0].out].desc.shape, (Dims{3, 4, 2}));
  for (const auto& [in, out] :
       {std::pair(Dims{std::int64_t{1} << 40, 0}, Dims{0, std::int64_t{1} << 40}),
        std::pair(Dims{40000, 1}, Dims{1, 40000}), std::pair(Dims{6, 0}, Dims{4, 6}),
        std::pair(Dims{6, 5}, Dims{0, 6}), std::pair(Dims{5, 5}, Dims{4, 5})}) {
    const auto refused = opened(in, out);
    ASSERT_FALSE(refused) << to_string(in);
    EXPECT_EQ(refused.error().code, Code::kShapeMismatch) << refused.error().text();
  }
}

// A router is a module with a parameter; what the config says of it goes by the parameter's name.
TEST(PeftAdapter, WeightsOfModulesThatAreNoLinears) {
  const TemporaryFolder folder;
  put_adapter(folder,
              {f32("mlp.gate.lora_A.weight", {3, 8}), f32("mlp.gate.lora_B.weight", {6, 3}),
               f32("q_proj.lora_A.weight", {2, 8}), f32("q_proj.lora_B.weight", {6, 2})},
              R"({"peft_type": "LORA", "r": 2, "target_parameters": ["gate.weight"],
                  "rank_pattern": {"gate.weight": 3}})");
  const auto adapter = open_peft_adapter(folder.path());
  ASSERT_TRUE(adapter) << adapter.error().text();
  ASSERT_EQ(adapter->modules.size(), 2U);
  EXPECT_EQ(adapter->modules[0].name, "mlp.gate");
  EXPECT_EQ(adapter->modules[0].configured, "mlp.gate.weight");
  EXPECT_EQ(adapter->modules[1].configured, "q_proj");
}

TEST(PeftAdapter, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  const auto refusal = [&] { return open_peft_adapter(folder.path()).error(); };
  EXPECT_EQ(refusal().code, Code::kConfigMissing);
  EXPECT_THAT(refusal().message, HasSubstr("adapter_config.json is missing"));
  folder.put("adapter_config.json", kConfig);
  EXPECT_EQ(refusal().code, Code::kNotFound);
  EXPECT_THAT(refusal().message, HasSubstr("nor adapter_model.bin"));
  folder.put("adapter_model.bin", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(refusal().code, Code::kTorchArchive);
  EXPECT_THAT(refusal().message, HasSubstr("adapter_model.bin"));
  EXPECT_THAT(refusal().message, HasSubstr("Git LFS pointer"));
  folder.put("adapter_model.safetensors", "\x08");
  EXPECT_EQ(refusal().code, Code::kSafetensorsCorrupt);
  EXPECT_EQ(open_peft_adapter(folder / "nowhere").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace shardwright::peft_adapter
