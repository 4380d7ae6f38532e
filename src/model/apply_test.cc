// SPDX-License-Identifier: Apache-2.0
#include "model/apply.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/golden_family.h"
#include "model/instances.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<TensorDesc> megatron_of(const Correspondence& correspondence) {
  std::vector<TensorDesc> descs;
  for (const MappedTensor& tensor : correspondence.megatron) descs.push_back(tensor.desc);
  return descs;
}

std::vector<TensorDesc> hf_of(const Correspondence& correspondence) {
  std::vector<TensorDesc> descs;
  for (const MappedTensor& tensor : correspondence.hf) descs.push_back(tensor.desc);
  return descs;
}

TensorDesc* find(std::vector<TensorDesc>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorDesc::name);
  return found == tensors.end() ? nullptr : &*found;
}

bool has_named(std::vector<TensorDesc> tensors, std::string_view name) {
  return find(tensors, name) != nullptr;
}

void drop(std::vector<TensorDesc>& tensors, std::string_view name) {
  ASSERT_EQ(std::erase_if(tensors, [&](const TensorDesc& desc) { return desc.name == name; }), 1U);
}

Correspondence llama_from_hf(const SampleModel& model, bool bias) {
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), model.llama(bias, bias));
  if (!mapped) throw std::runtime_error(mapped.error().message);
  return *mapped;
}

TEST(MapFromHf, NamesEveryTensorWithoutARule) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.llama(false, false);
  for (int i = 0; i < 25; ++i) {
    hf.push_back(TensorDesc{fmt::format("extra.{}", i), DType::kBF16, {1}});
  }
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(mapped.error().message, HasSubstr("25 tensors without a rule: extra.0, extra.1, "));
  EXPECT_THAT(mapped.error().message, HasSubstr("extra.19 and 5 more"));
  EXPECT_THAT(mapped.error().message, HasSubstr("layers 2"));
}

TEST(MapFromHf, OffersTheNearestMissingName) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.llama(false, false);
  find(hf, "model.layers.1.mlp.up_proj.weight")->name = "model.layers.1.mlp.upp_proj.weight";
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(mapped.error().message,
              HasSubstr("nearest missing name: model.layers.1.mlp.up_proj.weight"));
}

TEST(MapFromHf, NamesWhatIsMissing) {
  const SampleModel model;
  for (const char* name :
       {"model.norm.weight", "lm_head.weight", "model.layers.0.self_attn.k_proj.weight",
        "model.layers.1.mlp.gate_proj.weight"}) {
    std::vector<TensorDesc> hf = model.llama(false, false);
    drop(hf, name);
    const auto mapped = map_from_hf(shipped("llama"), model.sizes(), hf);
    ASSERT_FALSE(mapped) << name;
    EXPECT_EQ(mapped.error().code, Code::kUnmatchedTarget) << mapped.error().message;
    EXPECT_THAT(mapped.error().message, HasSubstr(name));
  }
}

TEST(MapFromHf, RefusesALayerCountThatTheFilesContradict) {
  SampleModel model;
  const std::vector<TensorDesc> hf = model.llama(false, false);
  model.layers = 3;
  const auto more = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kUnmatchedTarget);
  EXPECT_THAT(more.error().message, HasSubstr("model.layers.2.input_layernorm.weight"));
  model.layers = 1;
  const auto fewer = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_FALSE(fewer);
  EXPECT_EQ(fewer.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(fewer.error().message, HasSubstr("layers 1"));
}

TEST(MapFromHf, RefusesSizesThatTheShapesContradict) {
  const SampleModel model;
  struct Case {
    const char* size;
    std::int64_t value;
    const char* message;
  };
  for (const Case& bad :
       {Case{"hidden", 8, "hidden"}, Case{"ffn", 6, "2 * ffn"},
        Case{"vocab", 9, "(9, 6) = (vocab, hidden)"}, Case{"head_dim", 4, "12 rows in part 1"}}) {
    ModelSizes sizes = model.sizes();
    sizes[bad.size] = bad.value;
    const auto mapped = map_from_hf(shipped("llama"), sizes, model.llama(false, false));
    ASSERT_FALSE(mapped) << bad.size;
    EXPECT_EQ(mapped.error().code, Code::kShapeMismatch) << mapped.error().message;
    EXPECT_THAT(mapped.error().message, HasSubstr(bad.message));
  }
}

TEST(MapFromHf, BoundsWhatHostileNumbersCanAskFor) {
  const SampleModel model;
  ModelSizes sizes = model.sizes();
  sizes["layers"] = std::int64_t{1} << 40;
  EXPECT_EQ(map_from_hf(shipped("llama"), sizes, model.llama(false, false)).error().code,
            Code::kLimit);
  sizes["layers"] = std::int64_t{1} << 19;
  sizes["experts"] = std::int64_t{1} << 19;
  EXPECT_EQ(map_from_hf(shipped("mixtral"), sizes, model.llama(false, false)).error().code,
            Code::kLimit);
}

TEST(MapFromHf, RefusesATensorGivenTwice) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.llama(false, false);
  hf.push_back(hf[3]);
  EXPECT_EQ(map_from_hf(shipped("llama"), model.sizes(), hf).error().code, Code::kDuplicateName);
}

TEST(MapFromHf, ListsTheTensorsThatItIgnores) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.llama(false, false);
  hf.push_back(TensorDesc{"model.layers.1.self_attn.rotary_emb.inv_freq", DType::kF32, {1}});
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_THAT(mapped->ignored, ElementsAre("model.layers.1.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(has_named(hf_of(*mapped), "model.layers.1.self_attn.rotary_emb.inv_freq"));
}

TEST(Llama, MapsTheBiasesOfBothKinds) {
  const SampleModel model;
  const std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, true));
  for (const char* name :
       {"decoder.layers.1.self_attention.linear_qkv.bias",
        "decoder.layers.1.self_attention.linear_proj.bias", "decoder.layers.1.mlp.linear_fc1.bias",
        "decoder.layers.1.mlp.linear_fc2.bias"}) {
    EXPECT_TRUE(has_named(megatron, name)) << name;
  }
  std::vector<TensorDesc> hf = model.llama(true, true);
  drop(hf, "model.layers.0.self_attn.o_proj.bias");
  EXPECT_EQ(map_from_hf(shipped("llama"), model.sizes(), hf).error().code, Code::kUnmatchedSource)
      << "biases on q, k and v alone are another family";
}

TEST(Tied, AHeadInTheFileIsACopy) {
  SampleModel model;
  const std::vector<TensorDesc> with_head = model.llama(false, false);
  model.tied = true;
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), with_head);
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->copies.size(), 1U);
  EXPECT_EQ(mapped->copies[0].desc.name, "lm_head.weight");
  EXPECT_EQ(mapped->copies[0].original, "model.embed_tokens.weight");
  EXPECT_FALSE(mapped->copies[0].emitted_by_default);
  const std::vector<TensorDesc> megatron = megatron_of(*mapped);
  EXPECT_FALSE(has_named(megatron, "output_layer.weight"));

  const auto plain = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->copies.empty()) << "nobody asked for it";
  const HfWanted wanted{with_head};
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron, &wanted);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->copies.size(), 1U);
  EXPECT_EQ(back->copies[0].desc.name, "lm_head.weight");
}

TEST(Copies, RepeatTheFirstOfTheirOriginalsThatIsStored) {
  using Names = std::vector<std::string>;
  const std::vector<CopyInstance> copies = {
      {nullptr, "mtp_head", {"head", "late"}},
      {nullptr, "head", {"old", "new"}},
      {nullptr, "ring", {"round"}},
      {nullptr, "round", {"ring", "end"}},
      {nullptr, "alone", {}},
  };
  const auto original = [&](std::size_t copy, const Names& stored) {
    return CopyIndex(copies)
        .stored_original(copies[copy],
                         [&](const std::string& name) {
                           return std::ranges::find(stored, name) != stored.end();
                         })
        .value_or("none");
  };
  EXPECT_EQ(original(1, {"new", "old"}), "old");
  EXPECT_EQ(original(1, {"new"}), "new");
  EXPECT_EQ(original(1, {"head"}), "none") << "not itself";
  EXPECT_EQ(original(0, {"head", "new", "late"}), "new")
      << "what is a copy stands for its original";
  EXPECT_EQ(original(0, {"head", "late"}), "late");
  EXPECT_EQ(original(2, {"ring", "round"}), "none");
  EXPECT_EQ(original(2, {"ring", "end"}), "end");
  EXPECT_EQ(original(4, {"alone"}), "none");
}

TEST(Tied, AnOutputLayerInMegatronContradictsIt) {
  SampleModel model;
  const std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  model.tied = true;
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(back.error().message, HasSubstr("output_layer.weight"));
  EXPECT_THAT(back.error().message, HasSubstr("is tied to the word embeddings"));
}

TEST(Tied, ALostOutputLayerMayBeTheEmbedding) {
  SampleModel model;
  model.tied = true;
  std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  model.tied = false;
  const auto refused = [&] {
    const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
    EXPECT_EQ(back.error().code, Code::kUnmatchedTarget);
    return back.error().message;
  };
  EXPECT_THAT(refused(), HasSubstr("is not tied to the word embeddings"));
  drop(megatron, "decoder.final_layernorm.weight");
  EXPECT_THAT(refused(), Not(HasSubstr("tied"))) << "more was lost";
}

TEST(Copies, ThatDifferAreKeptAndComeBack) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  const auto sizes = sizes_from_hf_config(*golden.mapping, golden.config);
  const std::string name = "model.layers.3.embed_tokens.weight";
  const auto mapped = map_from_hf(*golden.mapping, *sizes, golden.hf, FromHfOptions{{name}});
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->copies.size(), 1U);
  EXPECT_EQ(mapped->copies[0].desc.name, "model.layers.3.shared_head.head.weight");
  const std::vector<TensorDesc> megatron = megatron_of(*mapped);
  EXPECT_TRUE(has_named(megatron, "hf_extra." + name));
  const HfWanted wanted{golden.hf};
  const auto back = map_from_megatron(*golden.mapping, *sizes, megatron, &wanted);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(block_lines(*back), block_lines(*mapped));
  EXPECT_EQ(back->copies.size(), 1U);
}

TEST(Copies, OfAnotherShapeCannotRepeatTheirOriginal) {
  SampleModel model;
  std::vector<TensorDesc> hf = model.llama(false, false);
  find(hf, "lm_head.weight")->shape = {3, 6};
  model.tied = true;
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(mapped->copies.empty());
  EXPECT_TRUE(has_named(megatron_of(*mapped), "hf_extra.lm_head.weight"));
}

TEST(Copies, OfATiedHeadRepeatTheEmbedding) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  sizes["tied"] = 1;
  std::vector<TensorDesc> hf = golden.hf;
  drop(hf, "lm_head.weight");
  const auto mapped = map_from_hf(*golden.mapping, sizes, hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->copies.size(), 2U);
  EXPECT_EQ(mapped->copies[1].desc.name, "model.layers.3.shared_head.head.weight");
  EXPECT_EQ(mapped->copies[1].original, "model.embed_tokens.weight");
}

TEST(Copies, UnknownExtrasAreUnmatched) {
  const SampleModel model;
  std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  megatron.push_back(TensorDesc{"hf_extra.model.secret", DType::kBF16, {1}});
  EXPECT_EQ(map_from_megatron(shipped("llama"), model.sizes(), megatron).error().code,
            Code::kUnmatchedSource);
}

TEST(Mtp, LayersAreCountedFromTheTensors) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  sizes["mtp_layers"] = 0;  // some configurations do not mention the layer
  const auto mapped = map_from_hf(*golden.mapping, sizes, golden.hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(has_named(megatron_of(*mapped), "mtp.layers.0.enorm.weight"));
}

TEST(Mtp, WhatIsKeptBesideADroppedLayerGoesWithIt) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  std::vector<TensorDesc> canonical = golden.canonical;
  canonical.push_back({"hf_extra.model.layers.3.embed_tokens.weight", DType::kBF16, {8, 4}});
  const auto whole = map_from_megatron(*golden.mapping, sizes, canonical);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE(has_named(hf_of(*whole), "model.layers.3.embed_tokens.weight"));
  EXPECT_THAT(whole->ignored, testing::IsEmpty());
  std::erase_if(canonical, [](const TensorDesc& desc) { return desc.name.starts_with("mtp."); });
  const auto rest = map_from_megatron(*golden.mapping, sizes, canonical);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_FALSE(has_named(hf_of(*rest), "model.layers.3.embed_tokens.weight"));
  EXPECT_THAT(rest->ignored, ElementsAre("hf_extra.model.layers.3.embed_tokens.weight"));
  canonical.back().name = "hf_extra.model.layers.4.embed_tokens.weight";
  EXPECT_FALSE(map_from_megatron(*golden.mapping, sizes, canonical)) << "there was no such layer";
}

TEST(Mtp, ALayerThatMegatronDroppedIsReported) {
  const GoldenFamily golden = load_golden("deepseek_v3_mtp");
  const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  std::vector<TensorDesc> canonical = golden.canonical;
  std::erase_if(canonical, [](const TensorDesc& desc) { return desc.name.starts_with("mtp."); });
  const HfWanted wanted{golden.hf};
  const auto back = map_from_megatron(*golden.mapping, sizes, canonical, &wanted);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_THAT(back->ignored, testing::Contains("model.layers.3.enorm.weight"));
  EXPECT_THAT(back->ignored, testing::Contains("model.layers.3.embed_tokens.weight"));
  EXPECT_THAT(back->ignored, testing::Not(testing::Contains("model.layers.2.mlp.gate.weight")));
  EXPECT_EQ(back->hf.size() + back->ignored.size(), golden.hf.size());
}

TEST(Mtp, QwenKeepsItsLayerOutsideTheStack) {
  SampleModel model;
  std::vector<TensorDesc> hf = model.qwen3_moe(false, model.layers);  // dense: plain Qwen 3
  const std::vector<TensorDesc> layers = hf;
  for (const TensorDesc& desc : layers) {
    const std::string_view prefix = "model.layers.0.";
    if (!desc.name.starts_with(prefix)) continue;
    hf.push_back(
        TensorDesc{"mtp.layers.0." + desc.name.substr(prefix.size()), desc.dtype, desc.shape});
  }
  const std::int64_t h = model.hidden;
  hf.push_back(TensorDesc{"mtp.fc.weight", DType::kBF16, {h, 2 * h}});
  for (const char* name :
       {"mtp.norm.weight", "mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight"}) {
    hf.push_back(TensorDesc{name, DType::kBF16, {h}});
  }
  const auto mapped = map_from_hf(shipped("qwen3"), model.sizes(), hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  const auto origins = element_origins(*mapped);
  EXPECT_EQ(origins.at("mtp.layers.0.eh_proj.weight(5, 11)"), "mtp.fc.weight(5, 11)");
  EXPECT_EQ(origins.at("mtp.layers.0.enorm.weight(0,)"), "mtp.pre_fc_norm_embedding.weight(0,)");
  EXPECT_EQ(origins.at("mtp.layers.0.hnorm.weight(0,)"), "mtp.pre_fc_norm_hidden.weight(0,)");
  EXPECT_EQ(origins.at("mtp.layers.0.final_layernorm.weight(0,)"), "mtp.norm.weight(0,)");
  EXPECT_EQ(origins.at("mtp.layers.0.transformer_layer.self_attention.linear_qkv.weight(6, 1)"),
            "mtp.layers.0.self_attn.k_proj.weight(0, 1)");
  std::vector<TensorDesc> megatron = megatron_of(*mapped);
  const auto back = map_from_megatron(shipped("qwen3"), model.sizes(), megatron);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(block_lines(*back), block_lines(*mapped));

  std::erase_if(megatron, [](const TensorDesc& desc) { return desc.name.starts_with("mtp."); });
  const HfWanted wanted{hf};
  const auto without = map_from_megatron(shipped("qwen3"), model.sizes(), megatron, &wanted);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_THAT(without->ignored, testing::Contains("mtp.fc.weight"));
}

TEST(MapFromMegatron, ReadsTheNormNamesOfTheLocalSpec) {
  for (const char* folder : {"qwen3_moe", "mixtral", "deepseek_v3"}) {
    const GoldenFamily golden = load_golden(folder);
    const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
    std::vector<TensorDesc> canonical = golden.canonical;
    TensorDesc* norm = find(canonical, "decoder.layers.1.pre_mlp_layernorm.weight");
    ASSERT_NE(norm, nullptr);
    norm->name = "decoder.layers.1.mlp.linear_fc1.layer_norm_weight";
    const auto back = map_from_megatron(*golden.mapping, sizes, canonical);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(has_named(hf_of(*back), "model.layers.1.post_attention_layernorm.weight"));
    EXPECT_TRUE(has_named(megatron_of(*back), "decoder.layers.1.mlp.linear_fc1.layer_norm_weight"))
        << "the name as the checkpoint has it";
  }
}

TEST(MapFromMegatron, RefusesANormUnderBothItsNames) {
  const GoldenFamily golden = load_golden("qwen3_moe");
  const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  std::vector<TensorDesc> canonical = golden.canonical;
  TensorDesc twice = *find(canonical, "decoder.layers.1.pre_mlp_layernorm.weight");
  twice.name = "decoder.layers.1.mlp.linear_fc1.layer_norm_weight";
  canonical.push_back(twice);
  EXPECT_EQ(map_from_megatron(*golden.mapping, sizes, canonical).error().code,
            Code::kUnmatchedSource);
}

TEST(MapFromMegatron, CutsNoRowsOfOneTableThatTheOtherDoesNotHave) {
  const SampleModel model;
  std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  find(megatron, "embedding.word_embeddings.weight")->shape[0] = 8;
  find(megatron, "output_layer.weight")->shape[0] = 16;
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, Code::kShapeMismatch);
  EXPECT_THAT(back.error().message,
              HasSubstr("output_layer.weight: found 16 rows, expected 8 as in "
                        "embedding.word_embeddings.weight"));
}

TEST(MapFromMegatron, RefusesCodesWithoutScales) {
  const SampleModel model;
  for (const DType dtype : {DType::kF8E4M3, DType::kF8E8M0, DType::kF4E2M1X2}) {
    std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
    find(megatron, "output_layer.weight")->dtype = dtype;
    const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, Code::kDtypeUnsupported);
    EXPECT_THAT(back.error().message, HasSubstr("output_layer.weight: found dtype float"));
  }
}

TEST(MapFromMegatron, CutsPaddedVocabularyRows) {
  const SampleModel model;
  std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  for (const char* name : {"embedding.word_embeddings.weight", "output_layer.weight"}) {
    find(megatron, name)->shape[0] = 16;
  }
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_TRUE(back) << back.error().message;
  std::vector<TensorDesc> hf = hf_of(*back);
  EXPECT_EQ(find(hf, "model.embed_tokens.weight")->shape, (Dims{7, 6}));
  EXPECT_EQ(find(hf, "lm_head.weight")->shape, (Dims{7, 6}));
  std::vector<TensorDesc> kept = megatron_of(*back);
  EXPECT_EQ(find(kept, "output_layer.weight")->shape, (Dims{16, 6}));

  // With half as many as the embedding it would be a head for rewards or classes.
  find(megatron, "embedding.word_embeddings.weight")->shape[0] = 7;
  find(megatron, "output_layer.weight")->shape[0] = 6;
  const auto fewer = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_FALSE(fewer);
  EXPECT_EQ(fewer.error().code, Code::kShapeMismatch);
  EXPECT_THAT(fewer.error().message, HasSubstr("at least 7 rows"));
}

TEST(MapFromMegatron, NamesUnknownAndMissingTensors) {
  const SampleModel model;
  std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  megatron.push_back(TensorDesc{"decoder.layers.0.mlp.router.weight", DType::kBF16, {3, 6}});
  const auto unknown = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUnmatchedSource);
  EXPECT_THAT(unknown.error().message, HasSubstr("decoder.layers.0.mlp.router.weight"));
  megatron.pop_back();
  drop(megatron, "decoder.layers.1.mlp.linear_fc2.weight");
  const auto missing = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kUnmatchedTarget);
  EXPECT_THAT(missing.error().message, HasSubstr("decoder.layers.1.mlp.linear_fc2.weight"));
}

TEST(MapFromMegatron, RefusesWantedTensorsThatItCannotMake) {
  const SampleModel model;
  const std::vector<TensorDesc> megatron = megatron_of(llama_from_hf(model, false));
  std::vector<TensorDesc> hf = model.llama(true, false);
  const HfWanted with_bias{hf};
  const auto lost = map_from_megatron(shipped("llama"), model.sizes(), megatron, &with_bias);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kUnmatchedTarget);
  EXPECT_THAT(lost.error().message, HasSubstr("model.layers.0.self_attn.q_proj.bias"));

  hf = model.llama(false, false);
  find(hf, "model.norm.weight")->shape = {5};
  const HfWanted other_shape{hf};
  const auto mismatch = map_from_megatron(shipped("llama"), model.sizes(), megatron, &other_shape);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code, Code::kShapeMismatch);
  EXPECT_THAT(mismatch.error().message, HasSubstr("as it was imported"));

  hf = model.llama(false, false);
  find(hf, "lm_head.weight")->shape = {99, 6};
  const HfWanted other_vocabulary{hf};
  EXPECT_TRUE(map_from_megatron(shipped("llama"), model.sizes(), megatron, &other_vocabulary));
}

TEST(Experts, PackedAndListedFormsAreTheSameMegatronTensor) {
  const SampleModel model;
  const Mapping& family = shipped("qwen3_moe");
  const auto listed = map_from_hf(family, model.sizes(), model.qwen3_moe(false, 0));
  const auto packed = map_from_hf(family, model.sizes(), model.qwen3_moe(true, 0));
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(tensor_lines(listed->megatron), tensor_lines(packed->megatron));
  const std::string up = "decoder.layers.0.mlp.experts.experts.linear_fc1.weight(2, 3, 1)";
  EXPECT_EQ(element_origins(*listed).at(up), "model.layers.0.mlp.experts.2.up_proj.weight(1, 1)");
  EXPECT_EQ(element_origins(*packed).at(up), "model.layers.0.mlp.experts.gate_up_proj(2, 3, 1)");

  const std::vector<TensorDesc> megatron = megatron_of(*packed);
  const auto by_default = map_from_megatron(family, model.sizes(), megatron);
  ASSERT_TRUE(by_default);
  EXPECT_EQ(block_lines(*by_default), block_lines(*listed));
  const std::vector<TensorDesc> hf = model.qwen3_moe(true, 0);
  const HfWanted wanted{hf};
  const auto as_it_was = map_from_megatron(family, model.sizes(), megatron, &wanted);
  ASSERT_TRUE(as_it_was) << as_it_was.error().message;
  EXPECT_EQ(block_lines(*as_it_was), block_lines(*packed));
}

TEST(Experts, BothFormsInOneLayerAreRefused) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.qwen3_moe(false, 0);
  for (const TensorDesc& desc : model.qwen3_moe(true, 0)) {
    if (!has_named(hf, desc.name)) hf.push_back(desc);
  }
  EXPECT_EQ(map_from_hf(shipped("qwen3_moe"), model.sizes(), hf).error().code,
            Code::kUnmatchedSource);
}

TEST(Experts, AMissingExpertIsNamed) {
  const SampleModel model;
  std::vector<TensorDesc> hf = model.qwen3_moe(false, 1);
  drop(hf, "model.layers.1.mlp.experts.2.up_proj.weight");
  const auto mapped = map_from_hf(shipped("qwen3_moe"), model.sizes(), hf);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, Code::kUnmatchedTarget);
  EXPECT_THAT(mapped.error().message,
              HasSubstr("missing that it needs: model.layers.1.mlp.experts.2.up_proj.weight;"));
}

TEST(Experts, EachLayersKindComesFromItsTensors) {
  const SampleModel model;
  const auto mapped = map_from_hf(shipped("qwen3_moe"), model.sizes(), model.qwen3_moe(false, 1));
  ASSERT_TRUE(mapped) << mapped.error().message;
  const std::vector<TensorDesc> megatron = megatron_of(*mapped);
  EXPECT_TRUE(has_named(megatron, "decoder.layers.0.mlp.linear_fc1.layer_norm_weight"));
  EXPECT_TRUE(has_named(megatron, "decoder.layers.1.pre_mlp_layernorm.weight"));
  EXPECT_FALSE(has_named(megatron, "decoder.layers.1.mlp.linear_fc1.layer_norm_weight"));
}

TEST(Mixtral, ReadsAllItsSpellings) {
  const GoldenFamily golden = load_golden("mixtral");
  const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  SampleModel model;
  model.layers = sizes.at("layers");
  model.hidden = sizes.at("hidden");
  model.heads = sizes.at("heads");
  model.groups = sizes.at("groups");
  model.head_dim = sizes.at("head_dim");
  model.vocab = sizes.at("vocab");
  model.experts = sizes.at("experts");
  model.moe_ffn = sizes.at("moe_ffn");
  const auto original = map_from_hf(*golden.mapping, sizes, golden.hf);
  ASSERT_TRUE(original) << original.error().message;
  for (const bool is_packed : {false, true}) {
    std::vector<TensorDesc> hf = model.qwen3_moe(is_packed, 0);
    std::erase_if(hf, [](const TensorDesc& d) { return d.name.ends_with("_norm.weight"); });
    const auto mapped = map_from_hf(*golden.mapping, sizes, hf);
    ASSERT_TRUE(mapped) << mapped.error().message;
    EXPECT_EQ(tensor_lines(mapped->megatron), tensor_lines(original->megatron));
  }
}

TEST(DeepseekV2, MapsTheQueryWithAndWithoutCompression) {
  const SampleModel model;
  for (const std::int64_t q_rank : {0, 4}) {
    const auto mapped = map_from_hf(shipped("deepseek_v2"), model.deepseek_sizes(q_rank),
                                    model.deepseek_v2(q_rank));
    ASSERT_TRUE(mapped) << mapped.error().message;
    const std::vector<TensorDesc> megatron = megatron_of(*mapped);
    EXPECT_EQ(has_named(megatron, "decoder.layers.1.self_attention.linear_q_proj.weight"),
              q_rank == 0);
    EXPECT_EQ(has_named(megatron, "decoder.layers.1.self_attention.linear_q_up_proj.weight"),
              q_rank != 0);
    EXPECT_TRUE(has_named(megatron, "decoder.layers.1.mlp.shared_experts.linear_fc1.weight"));
    EXPECT_FALSE(has_named(megatron, "decoder.layers.0.mlp.shared_experts.linear_fc1.weight"));
    EXPECT_FALSE(has_named(megatron, "decoder.layers.1.mlp.router.expert_bias"));
  }
}

TEST(DeepseekV3, PinsTheExpertBias) {
  const GoldenFamily golden = load_golden("deepseek_v3");
  const ModelSizes sizes = *sizes_from_hf_config(*golden.mapping, golden.config);
  const auto mapped = map_from_hf(*golden.mapping, sizes, golden.hf);
  ASSERT_TRUE(mapped);
  int pinned = 0;
  for (const MappedTensor& tensor : mapped->megatron) {
    if (!tensor.pinned_dtype) continue;
    ++pinned;
    EXPECT_THAT(tensor.desc.name, testing::EndsWith("mlp.router.expert_bias"));
    EXPECT_EQ(tensor.desc.dtype, DType::kF32);
  }
  EXPECT_EQ(pinned, 2);
}

std::vector<std::string> names_of_tensors(const std::vector<MappedTensor>& tensors) {
  std::vector<std::string> names;
  for (const MappedTensor& tensor : tensors) names.push_back(tensor.desc.name);
  return names;
}

/// A golden family with one tensor renamed, dropped or given another shape.
Result<Correspondence> damaged(const std::string& folder, const std::string& name,
                               std::optional<TensorDesc> instead) {
  const GoldenFamily golden = load_golden(folder);
  std::vector<TensorDesc> hf = golden.hf;
  const auto found = std::ranges::find(hf, name, &TensorDesc::name);
  if (found == hf.end()) throw std::runtime_error(name);
  if (instead) {
    *found = *std::move(instead);
  } else {
    hf.erase(found);
  }
  const ModelSizes sizes = sizes_from_hf_config(*golden.mapping, golden.config).value();
  return map_from_hf(*golden.mapping, sizes, hf);
}

TEST(Hybrids, NameWhatIsMissingWrongOrTooMuch) {
  struct Case {
    std::string folder;
    std::string name;
    Dims shape;  // another one
  };
  const std::vector<Case> cases{
      {"qwen35_vl", "model.language_model.layers.0.linear_attn.in_proj_qkv.weight", {130, 64}},
      {"qwen35_vl", "model.language_model.layers.1.linear_attn.conv1d.weight", {128, 1, 5}},
      {"qwen35_vl", "model.language_model.layers.3.self_attn.q_proj.weight", {128, 64}},
      {"qwen35_vl", "model.visual.merger.linear_fc2.weight", {64, 64}},
      {"qwen3_vl", "model.visual.blocks.1.attn.qkv.bias", {99}},
      {"qwen3_vl", "model.visual.deepstack_merger_list.1.norm.weight", {32}},
      {"qwen25_vl", "visual.blocks.0.mlp.gate_proj.weight", {48, 33}},
      {"nemotron_h", "backbone.layers.0.mixer.in_proj.weight", {196, 65}},
      {"nemotron_h", "backbone.layers.3.mixer.conv1d.bias", {127}},
      {"nemotron_h", "backbone.layers.1.mixer.gate.e_score_correction_bias", {5}}};
  for (const Case& bad : cases) {
    const auto missing = damaged(bad.folder, bad.name, std::nullopt);
    ASSERT_FALSE(missing) << bad.name;
    const bool is_named = missing.error().message.find(bad.name) != std::string::npos;
    // Without it no kind of layer is complete, and what is left of the layer is named.
    EXPECT_TRUE(is_named || missing.error().code == Code::kUnmatchedSource)
        << missing.error().message;
    const auto renamed =
        damaged(bad.folder, bad.name, TensorDesc{bad.name + "x", DType::kBF16, {1}});
    ASSERT_FALSE(renamed) << bad.name;
    EXPECT_EQ(renamed.error().code, Code::kUnmatchedSource) << renamed.error().message;
    const auto reshaped =
        damaged(bad.folder, bad.name, TensorDesc{bad.name, DType::kBF16, bad.shape});
    ASSERT_FALSE(reshaped) << bad.name;
    EXPECT_EQ(reshaped.error().code, Code::kShapeMismatch) << reshaped.error().message;
    EXPECT_THAT(reshaped.error().message, HasSubstr(bad.name));
  }
}

constexpr std::string_view kSplitLayers = R"({
  "family": "split", "architectures": ["Split"], "model_types": ["split"],
  "sizes": {"layers": {"hf": "num_hidden_layers", "default": "halves / 2"},
            "halves": {"args": "num_layers", "default": "2 * layers"}},
  "indices": {"layer": {"size": "layers"}},
  "groups": {"attention": [{"megatron": "proj.weight", "hf": "attn.weight"}],
             "mlp": [{"megatron": "fc.weight", "hf": "mlp.weight"}]},
  "computed": ["hash.primes"],
  "rules": [
    {"use": "attention", "for": "layer", "megatron": "decoder.layers.{2 * layer}.", "hf": "layers.{layer}."},
    {"use": "mlp", "for": "layer", "megatron": "decoder.layers.{2 * layer + 1}.", "hf": "layers.{layer}."}
  ],
  "config": {}})";

// Hybrid forms have two layers of Megatron's for each one.
TEST(Hybrids, SplitALayerInTwo) {
  const Mapping mapping = parse_mapping(kSplitLayers, "split.json").value();
  const ModelSizes sizes{{"layers", 2}, {"halves", 4}};
  const std::vector<TensorDesc> hf{{"layers.0.attn.weight", DType::kBF16, {2, 3}},
                                   {"layers.0.mlp.weight", DType::kBF16, {4, 3}},
                                   {"layers.1.attn.weight", DType::kBF16, {2, 3}},
                                   {"layers.1.mlp.weight", DType::kBF16, {4, 3}}};
  const auto mapped = map_from_hf(mapping, sizes, hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_THAT(
      names_of_tensors(mapped->megatron),
      testing::UnorderedElementsAre("decoder.layers.0.proj.weight", "decoder.layers.1.fc.weight",
                                    "decoder.layers.2.proj.weight", "decoder.layers.3.fc.weight"));
  const HfConfig config = read_hf_config(R"({"num_hidden_layers": 2})").value();
  EXPECT_EQ(sizes_from_hf_config(mapping, config).value(), sizes);
  EXPECT_EQ(sizes_from_args(mapping, {{"num_layers", std::int64_t{4}}}).value(), sizes);
  EXPECT_THAT(args_from_hf_config(mapping, config).value().values,
              testing::Contains(testing::Pair("num_layers", ArgValue{std::int64_t{4}})));
  EXPECT_FALSE(sizes_from_args(mapping, {{"num_layers", std::int64_t{3}}}));
  EXPECT_FALSE(map_from_hf(mapping, {{"layers", 3}, {"halves", 6}}, hf)) << "one layer is missing";
}

TEST(MapFromMegatron, ReadsOverWhatMegatronMakesItself) {
  const Mapping mapping = parse_mapping(kSplitLayers, "split.json").value();
  const ModelSizes sizes{{"layers", 1}, {"halves", 2}};
  std::vector<TensorDesc> canonical{{"decoder.layers.0.proj.weight", DType::kBF16, {2, 3}},
                                    {"decoder.layers.1.fc.weight", DType::kBF16, {4, 3}},
                                    {"hash.primes", DType::kI64, {5}}};
  const auto mapped = map_from_megatron(mapping, sizes, canonical, nullptr, {});
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_THAT(names_of_tensors(mapped->hf),
              testing::UnorderedElementsAre("layers.0.attn.weight", "layers.0.mlp.weight"));
  canonical.back().name = "hash.offsets";
  const auto unknown = map_from_megatron(mapping, sizes, canonical, nullptr, {});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("hash.offsets"));
}

// Prediction layers of Nemotron-H: HF numbers their blocks through.
TEST(Hybrids, NumberTheBlocksOfPredictionLayersThrough) {
  GoldenFamily golden = load_golden("nemotron_h");
  ModelSizes sizes = sizes_from_hf_config(*golden.mapping, golden.config).value();
  EXPECT_EQ(sizes.at("mtp_length"), 2);
  for (const int layer : {0, 1}) {
    const auto add = [&](int block, const std::string& name, const Dims& shape) {
      golden.hf.push_back(
          {"mtp.layers." + std::to_string(2 * layer + block) + "." + name, DType::kBF16, shape});
    };
    for (const std::string name : {"enorm", "hnorm"}) add(0, name + ".weight", {64});
    add(0, "eh_proj.weight", {64, 128});
    add(0, "norm.weight", {64});
    add(0, "mixer.q_proj.weight", {64, 64});
    add(0, "mixer.k_proj.weight", {32, 64});
    add(0, "mixer.v_proj.weight", {32, 64});
    add(0, "mixer.o_proj.weight", {64, 64});
    add(1, "norm.weight", {64});
    add(1, "mixer.up_proj.weight", {96, 64});
    add(1, "mixer.down_proj.weight", {64, 96});
    add(1, "final_layernorm.weight", {64});
  }
  const auto mapped = map_from_hf(*golden.mapping, sizes, golden.hf);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_THAT(names_of_tensors(mapped->megatron),
              testing::IsSupersetOf(
                  {"mtp.layers.1.eh_proj.weight", "mtp.layers.1.final_layernorm.weight",
                   "mtp.layers.1.mtp_model_layer.layers.0.self_attention.linear_qkv.weight",
                   "mtp.layers.0.mtp_model_layer.layers.1.mlp.linear_fc2.weight"}));
}

// A delta net's norm is kept as w - 1; the exact tensor may stand beside it and is no stranger.
TEST(Hybrids, KnowTheExactNormsBesideTheShiftedOnes) {
  const GoldenFamily golden = load_golden("qwen35_vl");
  const ModelSizes sizes = sizes_from_hf_config(*golden.mapping, golden.config).value();
  const std::string hf = "model.language_model.layers.0.linear_attn.norm.weight";
  const auto mapped = map_from_hf(*golden.mapping, sizes, golden.hf);
  ASSERT_TRUE(mapped);
  const auto norm = std::ranges::find(mapped->hf, hf, [](const auto& t) { return t.desc.name; });
  EXPECT_EQ(norm->offset, -1.0);
  std::vector<TensorDesc> canonical = golden.canonical;
  canonical.push_back({"hf_extra." + hf, DType::kBF16, {16}});
  EXPECT_TRUE(map_from_megatron(*golden.mapping, sizes, canonical));
  canonical.back().name = "hf_extra.model.language_model.norm.weight";
  EXPECT_FALSE(map_from_megatron(*golden.mapping, sizes, canonical)) << "no such norm is shifted";
}

}  // namespace
}  // namespace shardwright
