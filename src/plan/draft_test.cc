// SPDX-License-Identifier: Apache-2.0
#include "plan/draft.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace shardwright {
namespace {

StoredTensor whole(const std::string& name, const Dims& shape) {
  StoredTensor tensor{{name, DType::kBF16, shape}, ChunkList(shape.size()), Encoding::kRaw};
  tensor.chunks.push_back({Box::whole(shape), 0, {}, {}});
  return tensor;
}

MappedTensor mapped(const std::string& name, const Dims& shape) {
  MappedTensor tensor;
  tensor.desc = {name, DType::kBF16, shape};
  return tensor;
}

// Two layers whose fc1 is [gate; up] of HF.
Correspondence two_layers() {
  Correspondence c;
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::string layer = std::to_string(i);
    c.hf.push_back(mapped("layers." + layer + ".gate", {2, 3}));
    c.hf.push_back(mapped("layers." + layer + ".up", {2, 3}));
    c.megatron.push_back(mapped("decoder.layers." + layer + ".mlp.linear_fc1.weight", {4, 3}));
    c.blocks.push_back({2 * i, i, {0, 0}, {0, 0}, {2, 3}, {0, 1}, {1, 1}});
    c.blocks.push_back({2 * i + 1, i, {0, 0}, {2, 0}, {2, 3}, {0, 1}, {1, 1}});
  }
  return c;
}

Catalog hf_catalog(const Correspondence& c) {
  Catalog catalog;
  for (const MappedTensor& tensor : c.hf) {
    catalog.tensors.push_back(whole(tensor.desc.name, tensor.desc.shape));
  }
  return catalog;
}

TEST(DraftFromHf, StacksLayersThatAreAlike) {
  const Correspondence c = two_layers();
  const auto drafts = draft_from_hf(c, hf_catalog(c), {}).value();
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].desc.name, "decoder.layers.mlp.linear_fc1.weight");
  EXPECT_EQ(drafts[0].desc.shape, (Dims{2, 4, 3}));
  ASSERT_EQ(drafts[0].recipe.views.size(), 4U);
  const TensorView up = drafts[0].recipe.views[3];
  EXPECT_EQ(up.box, (Box{{1, 2, 0}, {1, 2, 3}}));
  EXPECT_EQ(up.source, 3U);
  EXPECT_EQ(up.axis, (Dims{-1, 0, 1}));
}

TEST(CheckLayerDtypes, RefusesLayersThatOnlyADtypeKeepsApart) {
  Correspondence c = two_layers();
  c.megatron[1].desc.dtype = DType::kF16;
  const auto drafts = draft_from_hf(c, hf_catalog(c), {}).value();
  ASSERT_EQ(drafts.size(), 2U) << "they are not stacked";
  EXPECT_TRUE(check_layer_dtypes(drafts, LayerKeys::kNumbered)) << "Megatron numbers them as well";
  const Status checked = check_layer_dtypes(drafts, LayerKeys::kAutomatic);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kDtypeUnsupported);
  EXPECT_THAT(checked.error().message,
              testing::HasSubstr("decoder.layers.1.mlp.linear_fc1.weight: found dtype float16, "
                                 "expected bfloat16 as of decoder.layers.0.mlp.linear_fc1.weight"));
  // Of another shape they would not be stacked anyway.
  std::vector<DraftTensor> wider = drafts;
  wider[1].desc.shape = {5, 3};
  EXPECT_TRUE(check_layer_dtypes(wider, LayerKeys::kAutomatic));
}

TEST(DraftFromHf, StacksAttentionOfEachKindByItself) {
  Correspondence c;
  Catalog catalog;
  const std::vector<std::string> kinds = {"sliding", "global", "sliding"};
  for (std::uint32_t layer = 0; layer < 3; ++layer) {
    const Dims shape = kinds[layer] == "global" ? Dims{3} : Dims{2};
    const std::string hf = fmt::format("h.{}", layer);
    c.hf.push_back(mapped(hf, shape));
    c.megatron.push_back(
        mapped(fmt::format("decoder.layers.{}.self_attention_{}.w", layer, kinds[layer]), shape));
    c.blocks.push_back({layer, layer, {0}, {0}, shape, {0}, {1}});
    catalog.tensors.push_back(whole(hf, shape));
  }
  const auto drafts = draft_from_hf(c, catalog, {}).value();
  ASSERT_EQ(drafts.size(), 2U);
  EXPECT_EQ(drafts[0].desc.name, "decoder.layers.self_attention_sliding.w");
  EXPECT_EQ(drafts[0].desc.shape, (Dims{2, 2}));
  EXPECT_EQ(drafts[0].recipe.views[1].source, 2U) << "its second row is the third layer";
  EXPECT_EQ(drafts[1].desc.name, "decoder.layers.self_attention_global.w");
  EXPECT_EQ(drafts[1].desc.shape, (Dims{1, 3}));
}

TEST(Canonical, AStackOfOneKindHoldsTheLayersOfThatKind) {
  Catalog catalog;
  catalog.tensors.push_back(whole("decoder.layers.self_attention_global.w", {2, 3}));
  catalog.kind_stacks["self_attention_global"] = {1, 4};
  const auto tensors = canonical_tensors(catalog);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[1].desc.name, "decoder.layers.4.self_attention_global.w");
  EXPECT_EQ(tensors[1].layer, 1);
}

TEST(DraftFromHf, FillsWhatHfDoesNotHave) {
  Correspondence c;
  c.hf = {mapped("q", {2})};
  c.megatron = {mapped("qkv", {4})};
  c.megatron[0].rest = 0.0;
  c.blocks = {{0, 0, {0}, {0}, {2}, {0}, {1}}};
  Catalog catalog;
  catalog.tensors.push_back(whole("q", {2}));
  EXPECT_EQ(draft_from_hf(c, catalog, {}).value()[0].recipe.fill, 0.0);
}

TEST(DraftToHf, WhatStandsTwiceInMegatronIsReadOnce) {
  Correspondence c;
  c.hf = {mapped("k", {2})};
  c.megatron = {mapped("kv", {4})};
  c.blocks = {{0, 0, {0}, {0}, {2}, {0}, {1}}, {0, 0, {0}, {2}, {2}, {0}, {1}, true}};
  Catalog catalog;
  catalog.tensors.push_back(whole("kv", {4}));
  const auto drafts = draft_to_hf(c, canonical_tensors(catalog), {}).value();
  ASSERT_EQ(drafts[0].recipe.views.size(), 1U);
  EXPECT_EQ(drafts[0].recipe.views[0].source_origin, (Dims{0}));
}

TEST(DraftFromHf, NumbersLayersThatDiffer) {
  Correspondence c = two_layers();
  c.megatron[1].desc.name = "decoder.layers.1.mlp.experts.linear_fc1.weight";
  const auto drafts = draft_from_hf(c, hf_catalog(c), {}).value();
  ASSERT_EQ(drafts.size(), 2U);
  EXPECT_EQ(drafts[0].desc.name, "decoder.layers.0.mlp.linear_fc1.weight");
  c = two_layers();
  EXPECT_EQ(draft_from_hf(c, hf_catalog(c), {{}, LayerKeys::kAllNumbered}).value().size(), 2U);
  c.megatron[1].desc.name = "decoder.layers.2.mlp.linear_fc1.weight";
  EXPECT_EQ(draft_from_hf(c, hf_catalog(c), {}).value().size(), 2U) << "layer 1 is missing";
}

TEST(DraftFromHf, CastsOnlyWhatMayBeCast) {
  Correspondence c = two_layers();
  c.megatron[0].pinned_dtype = true;
  const auto drafts =
      draft_from_hf(c, hf_catalog(c), {DType::kF32, LayerKeys::kAllNumbered}).value();
  EXPECT_EQ(drafts[0].desc.dtype, DType::kBF16);
  EXPECT_EQ(drafts[1].desc.dtype, DType::kF32);
}

TEST(DraftFromHf, NamesTensorsThatTheCatalogLacks) {
  const Correspondence c = two_layers();
  Catalog catalog = hf_catalog(c);
  catalog.tensors.pop_back();
  const auto drafts = draft_from_hf(c, catalog, {});
  ASSERT_FALSE(drafts);
  EXPECT_EQ(drafts.error().code, Code::kUnmatchedSource);
  EXPECT_NE(drafts.error().message.find("layers.1.up"), std::string::npos);
}

TEST(DraftToHf, ReadsOutOfTheStack) {
  Correspondence c = two_layers();
  c.megatron[0].offset = -1.0;
  Catalog catalog;
  catalog.tensors.push_back(whole("decoder.layers.mlp.linear_fc1.weight", {2, 4, 3}));
  catalog.tensors.push_back(whole("optimizer.state.exp_avg.decoder.layers.mlp.x", {2, 4, 3}));
  const std::vector<CanonicalTensor> canonical = canonical_tensors(catalog);
  ASSERT_EQ(canonical.size(), 2U) << "optimizer states are no tensors of the model";
  EXPECT_EQ(canonical[1].desc.name, "decoder.layers.1.mlp.linear_fc1.weight");
  const auto drafts = draft_to_hf(c, canonical, {}).value();
  ASSERT_EQ(drafts.size(), 4U);
  const TensorView up = drafts[3].recipe.views[0];
  EXPECT_EQ(up.source, 0U);
  EXPECT_EQ(up.source_origin, (Dims{1, 2, 0}));
  EXPECT_EQ(up.axis, (Dims{1, 2}));
  EXPECT_EQ(drafts[0].recipe.add, 1.0);
  EXPECT_EQ(drafts[3].recipe.add, 0.0);
}

TEST(DraftToHf, WritesInterleavedRowsOneByOne) {
  Correspondence c;
  c.hf = {mapped("gate_up", {4, 3})};
  c.megatron = {mapped("fc1", {4, 3})};
  c.blocks = {{0, 0, {0, 0}, {0, 0}, {2, 3}, {0, 1}, {2, 1}},
              {0, 0, {1, 0}, {2, 0}, {2, 3}, {0, 1}, {2, 1}}};
  Catalog catalog;
  catalog.tensors.push_back(whole("fc1", {4, 3}));
  const auto drafts = draft_to_hf(c, canonical_tensors(catalog), {}).value();
  ASSERT_EQ(drafts[0].recipe.views.size(), 4U);
  const TensorView last_up = drafts[0].recipe.views[3];
  EXPECT_EQ(last_up.box, (Box{{3, 0}, {1, 3}}));
  EXPECT_EQ(last_up.source_origin, (Dims{3, 0}));
}

TEST(TakeRows, TakesEachFromWhereItIs) {
  constexpr std::uint32_t kTable = 3;
  constexpr std::uint32_t kOther = 9;
  DraftTensor tensor;
  // Rows 4 to 9 of the table; then every second one from 1 on, and one row again and again.
  tensor.recipe.views = {{{{0, 0}, {6, 2}}, kTable, {4, 0}, {0, 1}, {1, 1}},
                         {{{6, 0}, {3, 2}}, kTable, {1, 0}, {0, 1}, {2, 1}},
                         {{{9, 0}, {2, 2}}, kTable, {5, 0}, {-1, 1}, {1, 1}},
                         {{{11, 0}, {1, 2}}, kTable + 1, {5, 0}, {0, 1}, {1, 1}}};
  const std::vector<std::int64_t> places = {9, 5, 3, 20};
  take_rows(tensor, kTable, kOther, places);
  std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t, std::int64_t>> found;
  for (const TensorView& view : tensor.recipe.views) {
    found.emplace_back(view.box.origin[0], view.box.shape[0], view.source, view.source_origin[0]);
  }
  using Row = decltype(found)::value_type;
  EXPECT_THAT(found, testing::ElementsAre(
                         Row{0, 1, kTable, 4}, Row{1, 1, kOther, 1}, Row{2, 3, kTable, 6},
                         Row{5, 1, kOther, 0}, Row{6, 1, kTable, 1}, Row{7, 1, kOther, 2},
                         Row{8, 1, kOther, 1}, Row{9, 2, kOther, 1}, Row{11, 1, kTable + 1, 5}));
}

TEST(ResizeRows, PadsWithZerosAndCutsPadding) {
  Catalog catalog;
  catalog.tensors.push_back(whole("embedding.word_embeddings.weight", {5, 2}));
  DraftTensor tensor = draft_identity(catalog, {}).at(0);
  resize_rows(tensor, 8);
  EXPECT_EQ(tensor.desc.shape, (Dims{8, 2}));
  EXPECT_EQ(tensor.recipe.fill, 0.0);
  EXPECT_EQ(tensor.recipe.views[0].box, (Box{{0, 0}, {5, 2}}));
  resize_rows(tensor, 4);
  EXPECT_EQ(tensor.recipe.views[0].box, (Box{{0, 0}, {4, 2}}));
}

}  // namespace
}  // namespace shardwright
