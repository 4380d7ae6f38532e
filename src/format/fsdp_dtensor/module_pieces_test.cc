// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/module_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLayer = "decoder.layers.0.self_attention.";

FsdpPiece piece_of(const std::string& name, std::int64_t rows) {
  DraftTensor tensor{{name, DType::kF32, {rows, 4}}, {}, std::nullopt};
  FsdpName parameter;
  parameter.parameter = name;
  return {parameter, tensor, {}, {}};
}

std::vector<FsdpPiece> projections() {
  return {
      piece_of(kLayer + "in_proj.weight.query", 4), piece_of(kLayer + "in_proj.weight.z", 6),
      piece_of(kLayer + "in_proj.weight.alpha", 2), piece_of(kLayer + "in_proj.weight.key", 4),
      piece_of(kLayer + "in_proj.weight.value", 6), piece_of(kLayer + "in_proj.weight.beta", 2)};
}

std::vector<FsdpPiece> latents() {
  return {piece_of(kLayer + "linear_kv_down_proj.weight", 2),
          piece_of("decoder.layers.0.input_layernorm.weight", 4),
          piece_of(kLayer + "linear_q_down_proj.weight", 6)};
}

std::vector<std::string> names_in(std::vector<FsdpPiece> pieces, const ModuleForm& form,
                                  std::vector<std::string>& notes) {
  auto joined = put_into_modules(std::move(pieces), form, notes);
  if (!joined) return {joined.error().message};
  std::vector<std::string> names;
  for (FsdpPiece& piece : *joined) {
    name_for_modules(form, piece);
    names.push_back(piece.name.parameter + " " + to_string(piece.tensor.desc.shape));
  }
  return names;
}

TEST(ModulePieces, AreOneTensorOrAsTheSourceHasThem) {
  std::vector<std::string> notes;
  ModuleForm form;
  EXPECT_THAT(names_in(projections(), form, notes), ElementsAre(kLayer + "in_proj.weight (24, 4)"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("as 1 tensor-parallel ranks have them")));
  form.names.has_mixers_apart = true;
  notes.clear();
  EXPECT_EQ(names_in(projections(), form, notes).size(), 6U);
  form.modules.fused_latent = true;
  EXPECT_THAT(notes, testing::IsEmpty());
  EXPECT_THAT(names_in(latents(), form, notes),
              ElementsAre(kLayer + "linear_qkv_down_proj.weight (8, 4)",
                          kLayer + "linear_qkv_down_proj.layer_norm_weight (4, 4)"));
  form.names.has_latents_apart = true;
  notes.clear();
  EXPECT_EQ(names_in(latents(), form, notes).size(), 3U);
  EXPECT_THAT(notes, testing::IsEmpty());
}

TEST(ModulePieces, HaveTheSettingsOfWhatTheyAreMadeOf) {
  const std::string root = "optimizer.param_to_group_meta.module.module.module.";
  std::vector<std::string> notes;
  ModuleForm form;
  form.modules.fused_latent = true;
  auto joined = put_into_modules(latents(), form, notes);
  ASSERT_TRUE(joined);
  for (FsdpPiece& piece : *joined) name_for_modules(form, piece);
  EXPECT_EQ(joined->at(0).settings, root + kLayer + "linear_q_down_proj.weight");
  EXPECT_EQ(joined->at(1).settings, root + "decoder.layers.0.input_layernorm.weight");
}

TEST(ModulePieces, AreRefusedWhereRanksCannotShareThem) {
  std::vector<std::string> notes;
  ModuleForm form;
  form.tensor_parallel = 4;
  const auto odd = put_into_modules(projections(), form, notes);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Code::kNotDivisible);
  std::vector<FsdpPiece> half = latents();
  half.pop_back();
  form.modules.fused_latent = true;
  EXPECT_TRUE(put_into_modules(half, form, notes)) << "without queries nothing is fused";
}

}  // namespace
}  // namespace shardwright
