// SPDX-License-Identifier: Apache-2.0
#include "plan/trainer_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Names = std::vector<std::string>;

void add_entry(const std::string& name, DType dtype, Catalog& catalog) {
  catalog.tensors.push_back({{name, dtype, {4}}, ChunkList(1), Encoding::kRaw});
}

// A weight and its states as torch's state dicts call them.
void add_trained(const std::string& name, const Names& kinds, Catalog& catalog,
                 DType dtype = DType::kBF16) {
  add_entry("app.model." + name, dtype, catalog);
  for (const std::string& kind : kinds) {
    add_entry("app.optim.state." + name + "." + kind, DType::kF32, catalog);
  }
}

void add_settings(const Names& settings, Catalog& catalog) {
  for (const std::string& setting : settings) {
    catalog.objects.push_back({"app.optim.param_groups." + setting, 0, {}});
  }
}

Names texts_of(const Catalog& catalog, bool keeps_two_moments = false) {
  Names texts;
  for (const WrongState& state : find_wrong_trainer_states(catalog, keeps_two_moments).wrong) {
    texts.push_back(state.what);
  }
  return texts;
}

const Names kAdamWithStep = {"exp_avg", "exp_avg_sq", "step"};

TEST(TrainerStates, AreWholeOrOfUntrainedParameters) {
  Catalog catalog;
  add_trained("a.weight", kAdamWithStep, catalog);
  add_trained("b.weight", {"exp_avg", "exp_avg_sq", "step", "max_exp_avg_sq"}, catalog);
  add_trained("c.weight", {}, catalog);
  add_settings({"0.betas", "0.eps"}, catalog);
  const StateFindings found = find_wrong_trainer_states(catalog, true);
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.without, ElementsAre("app.model.c.weight"));
}

TEST(TrainerStates, AreTwoMomentsWhereSettingsSaySo) {
  for (const std::string gone : {"exp_avg", "exp_avg_sq"}) {
    Names left = kAdamWithStep;
    std::erase(left, gone);
    Catalog catalog;
    add_trained("a.weight", left, catalog);
    add_trained("b.weight", left, catalog);
    EXPECT_THAT(texts_of(catalog), IsEmpty()) << "nothing says what the optimizer is";
    EXPECT_THAT(texts_of(catalog, true), testing::SizeIs(1));
    add_settings({"0.betas", "0.eps", "1.betas"}, catalog);
    EXPECT_THAT(texts_of(catalog), IsEmpty()) << "one group may be Lion's";
    add_settings({"1.eps"}, catalog);
    EXPECT_THAT(texts_of(catalog),
                ElementsAre(AllOf(HasSubstr("tensor a.weight"), HasSubstr("by the optimizer's "),
                                  HasSubstr("(1 tensors more lack them too)"))));
  }
}

TEST(TrainerStates, MayBeOthersOfAdamsKin) {
  Catalog catalog;
  add_trained("a.weight", {"exp_avg", "exp_inf", "step"}, catalog);
  add_trained("b.weight", {"z", "exp_avg_sq"}, catalog);
  EXPECT_THAT(texts_of(catalog, true), IsEmpty());
}

TEST(TrainerStates, AreThoseThatOthersHave) {
  for (const std::string& gone : kAdamWithStep) {
    Names left = kAdamWithStep;
    std::erase(left, gone);
    Catalog catalog;
    add_trained("a.weight", left, catalog);
    add_trained("b.weight", kAdamWithStep, catalog);
    EXPECT_THAT(texts_of(catalog),
                ElementsAre(HasSubstr("expected exp_avg, exp_avg_sq, step as of b.weight")));
  }
  Catalog lion;  // and Muon, beside Adam
  add_trained("a.weight", {"exp_avg"}, lion);
  add_trained("b.weight", kAdamWithStep, lion);
  add_trained("c.weight", {"momentum_buffer"}, lion);
  EXPECT_THAT(texts_of(lion), IsEmpty());
}

TEST(TrainerStates, AreMasterWeightsOfAllOfADtype) {
  const Names with_master = {"exp_avg", "exp_avg_sq", "master_param"};
  Catalog catalog;
  add_trained("a.weight", with_master, catalog);
  add_trained("b.weight", {"exp_avg", "exp_avg_sq"}, catalog, DType::kF32);
  EXPECT_THAT(texts_of(catalog), IsEmpty());
  add_trained("c.weight", {"exp_avg", "exp_avg_sq"}, catalog);
  EXPECT_THAT(texts_of(catalog), ElementsAre(AllOf(HasSubstr("tensor c.weight"),
                                                   HasSubstr("master_param as of a.weight"))));
}

// As readers of DeepSpeed's files call them.
TEST(TrainerStates, StandBehindTheirKindToo) {
  Catalog catalog;
  add_entry("a.weight", DType::kF32, catalog);
  EXPECT_THAT(texts_of(catalog), IsEmpty());
  EXPECT_THAT(texts_of(catalog, true), ElementsAre(HasSubstr("optimizer: found no states")));
  add_entry("optimizer.state.exp_avg.a.weight", DType::kF32, catalog);
  EXPECT_THAT(texts_of(catalog, true), ElementsAre(HasSubstr("found the optimizer states exp_avg,"
                                                             " expected exp_avg, exp_avg_sq")));
  add_entry("optimizer.state.exp_avg_var.a.weight", DType::kF32, catalog);
  EXPECT_THAT(texts_of(catalog, true), IsEmpty());
}

}  // namespace
}  // namespace shardwright
