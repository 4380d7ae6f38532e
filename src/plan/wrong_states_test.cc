// SPDX-License-Identifier: Apache-2.0
#include "plan/wrong_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Entry {
  std::string name;
  Dims shape;
  DType dtype = DType::kF32;
};

StateFindings findings_of(const std::vector<Entry>& entries,
                          NamedOptimizer named = NamedOptimizer::kUntold,
                          bool keeps_master_weights = false) {
  Catalog catalog;
  for (const Entry& entry : entries) {
    catalog.tensors.push_back(
        {{entry.name, entry.dtype, entry.shape}, ChunkList(entry.shape.size()), Encoding::kRaw});
  }
  return find_wrong_states(catalog, {named, keeps_master_weights});
}

// A weight in bfloat16 with these states.
void add_weight(const std::string& name, const Dims& shape, const std::vector<std::string>& kinds,
                std::vector<Entry>& entries, const std::string& chain = "") {
  entries.push_back({name, shape, DType::kBF16});
  for (const std::string& kind : kinds) {
    entries.push_back({chain + "optimizer.state." + kind + "." + name, shape});
  }
}

const std::vector<std::string> kAdam = {"param", "exp_avg", "exp_avg_sq"};
const std::string kProj = "decoder.layers.self_attention.linear_proj.weight";
const std::string kNorm = "decoder.final_layernorm.weight";

std::vector<std::string> tensors_of(const StateFindings& findings) {
  std::vector<std::string> names;
  for (const WrongState& state : findings.wrong) names.push_back(state.tensor);
  return names;
}

TEST(WrongStates, AreNoneOfAWholeOptimizer) {
  std::vector<Entry> entries;
  add_weight(kProj, {4, 8, 8}, kAdam, entries);
  add_weight(kNorm, {8}, kAdam, entries);
  entries.push_back({"decoder.layers.mlp.router.expert_bias", {4, 2}});
  const StateFindings found = findings_of(entries, NamedOptimizer::kAdam);
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.without, IsEmpty());
  EXPECT_THAT(findings_of({{kProj, {4, 8, 8}}}).without, IsEmpty()) << "nothing is trained";
}

// Megatron-Core 0.19: Lion for matrices, Adam for the rest.
TEST(WrongStates, AreNoneOfLionBesideAdam) {
  std::vector<Entry> entries;
  add_weight(kProj, {4, 8, 8}, {"param", "exp_avg"}, entries);
  add_weight(kNorm, {8}, kAdam, entries);
  add_weight("embedding.word_embeddings.weight", {32, 8}, kAdam, entries);
  EXPECT_THAT(findings_of(entries, NamedOptimizer::kOfLinears).wrong, IsEmpty());
  EXPECT_THAT(tensors_of(findings_of(entries)), ElementsAre(kProj));
  add_weight("decoder.layers.mlp.linear_fc2.weight", {4, 8, 8}, {"param"}, entries);
  EXPECT_THAT(tensors_of(findings_of(entries, NamedOptimizer::kOfLinears)),
              ElementsAre("decoder.layers.mlp.linear_fc2.weight"));
}

TEST(WrongStates, AreMissingOnes) {
  for (const std::string& gone : kAdam) {
    std::vector<std::string> left = kAdam;
    std::erase(left, gone);
    std::vector<Entry> entries;
    add_weight(kNorm, {8}, kAdam, entries);
    add_weight(kProj, {4, 8, 8}, left, entries);
    add_weight(kProj + "2", {4, 8, 8}, left, entries);
    const StateFindings found = findings_of(entries);
    ASSERT_THAT(tensors_of(found), ElementsAre(kProj)) << gone;
    EXPECT_THAT(found.wrong[0].what,
                AllOf(HasSubstr("exp_avg, exp_avg_sq, param as of " + kNorm),
                      HasSubstr("(1 tensors more lack them too); convert without them")));
  }
}

TEST(WrongStates, LeaveFrozenWeightsAlone) {
  std::vector<Entry> entries;
  add_weight(kNorm, {8}, kAdam, entries);
  add_weight(kProj, {4, 8, 8}, {}, entries);
  const StateFindings found = findings_of(entries);
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.without, ElementsAre(kProj));
}

TEST(WrongStates, HaveAnotherShapeOrNoWeight) {
  std::vector<Entry> entries;
  add_weight(kProj, {8, 8}, kAdam, entries);
  add_weight(kNorm, {8}, kAdam, entries);
  entries[2].shape = Dims{4, 8};
  entries.push_back({"optimizer.state.exp_avg.decoder.layers.9.foo.weight", {8}});
  const StateFindings found = findings_of(entries);
  EXPECT_THAT(tensors_of(found),
              ElementsAre(entries[2].name, "optimizer.state.exp_avg.decoder.layers.9.foo.weight"));
  EXPECT_THAT(found.wrong[0].what, HasSubstr("of shape (4, 8), expected the weight's (8, 8)"));
  EXPECT_THAT(found.wrong[1].what, HasSubstr("of no tensor of the model"));
}

// Without a distributed optimizer they are trained in place.
TEST(WrongStates, AreNotMasterWeightsOfFloat32) {
  std::vector<Entry> entries;
  add_weight(kProj, {4, 8, 8}, {"fp32_param", "exp_avg", "exp_avg_sq"}, entries);
  add_weight(kNorm, {8}, {"exp_avg", "exp_avg_sq"}, entries);
  EXPECT_EQ(findings_of(entries).wrong.size(), 1U);
  entries[4].dtype = DType::kF32;
  EXPECT_THAT(findings_of(entries).wrong, IsEmpty());
}

// Muon has matrices, Adam the rest and the tables; or the chain tells.
TEST(WrongStates, AreComparedWithinOneOptimizer) {
  const std::string table = "embedding.word_embeddings.weight";
  const std::string experts = "decoder.layers.mlp.experts.experts.linear_fc1.weight";
  std::vector<Entry> entries;
  add_weight(table, {16, 8}, kAdam, entries);
  add_weight(kNorm, {8}, kAdam, entries);
  add_weight(kProj, {4, 8, 8}, {"param", "momentum_buffer"}, entries);
  add_weight(experts, {4, 2, 8, 8}, {"param", "momentum_buffer"}, entries);
  EXPECT_THAT(findings_of(entries).wrong, IsEmpty());
  std::erase_if(entries, [&](const Entry& entry) {
    return entry.name == "optimizer.state.momentum_buffer." + experts;
  });
  EXPECT_THAT(tensors_of(findings_of(entries)), ElementsAre(experts));

  std::vector<Entry> chained;
  add_weight(table, {16, 8}, kAdam, chained, "chained_0.");
  add_weight(kNorm, {8}, {"param", "exp_avg"}, chained, "chained_1.");
  EXPECT_THAT(findings_of(chained).wrong, IsEmpty());
}

// A run in float32 has none; one in bfloat16 would go on with rounded weights.
TEST(WrongStates, AreMasterWeightsThatAllLack) {
  std::vector<Entry> entries;
  add_weight(kProj, {4, 8, 8}, {"exp_avg", "exp_avg_sq"}, entries);
  add_weight(kNorm, {8}, {"exp_avg", "exp_avg_sq"}, entries);
  entries.push_back({"decoder.layers.mlp.router.weight", {4, 2, 8}});  // in float32 of its own
  entries.push_back({"optimizer.state.exp_avg.decoder.layers.mlp.router.weight", {4, 2, 8}});
  entries.push_back({"optimizer.state.exp_avg_sq.decoder.layers.mlp.router.weight", {4, 2, 8}});
  EXPECT_THAT(findings_of(entries, NamedOptimizer::kAdam).wrong, IsEmpty());
  const StateFindings found = findings_of(entries, NamedOptimizer::kAdam, true);
  ASSERT_THAT(tensors_of(found), ElementsAre(kProj));
  EXPECT_THAT(found.wrong[0].what,
              AllOf(HasSubstr("expected exp_avg, exp_avg_sq, param by the run's arguments"),
                    HasSubstr("1 tensors more")));
}

// Lion has one moment, and so has every parameter of it.
TEST(WrongStates, AreSecondMomentsOfAdamIfItIsNamed) {
  std::vector<Entry> entries;
  add_weight(kProj, {4, 8, 8}, {"param", "exp_avg"}, entries);
  EXPECT_THAT(findings_of(entries).wrong, IsEmpty());
  const StateFindings found = findings_of(entries, NamedOptimizer::kAdam);
  ASSERT_EQ(found.wrong.size(), 1U);
  EXPECT_THAT(found.wrong[0].what,
              HasSubstr("expected exp_avg, exp_avg_sq, param by the run's arguments"));
  std::vector<Entry> bare;
  add_weight(kProj, {4, 8, 8}, {"param"}, bare);
  EXPECT_THAT(findings_of(bare).wrong, IsEmpty()) << "SGD's may have no other";
  EXPECT_THAT(tensors_of(findings_of(bare, NamedOptimizer::kAdam)), ElementsAre(kProj));
}

}  // namespace
}  // namespace shardwright
