// SPDX-License-Identifier: Apache-2.0
#include "state/param_group.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

using pickle::Document;
using pickle::Value;

class GroupRuleTest : public ::testing::Test {
 protected:
  GroupRuleTest() : args_(document_.object(document_.global("argparse", "Namespace"))) {}

  void set(std::string_view name, Value value) { document_.set_attribute(args_, name, value); }

  [[nodiscard]] GroupRule rule() const { return read_group_rule(args_, groups_); }

  Document document_;
  Value args_;
  std::vector<Value> groups_;
};

TEST_F(GroupRuleTest, SaysTheUsualWhereNothingIsTold) {
  for (const GroupRule& rule : {rule(), read_group_rule({}, {})}) {
    EXPECT_FALSE(rule.decays_query_key_norms);
    EXPECT_FALSE(rule.spares_embeddings);
    EXPECT_EQ(rule.own_rate, OwnRate::kTables);
  }
}

TEST_F(GroupRuleTest, KnowsTheConditionBehindTheFlag) {
  for (const char* condition : {"apply_wd_to_qk_layernorm", "qwen3_next"}) {
    set("no_weight_decay_cond_type", document_.string(condition));
    EXPECT_TRUE(rule().decays_query_key_norms) << condition;
  }
  set("no_weight_decay_cond_type", document_.string("another"));
  EXPECT_FALSE(rule().decays_query_key_norms);
}

TEST_F(GroupRuleTest, SparesEmbeddingsWhereGroupsAreOfOldVersions) {
  set("embedding_init_method_std", document_.real(0.5));
  EXPECT_TRUE(rule().spares_embeddings);
  groups_.push_back(document_.dict());
  document_.set(groups_[0], "default_config", document_.boolean(true));
  EXPECT_FALSE(rule().spares_embeddings);
}

TEST_F(GroupRuleTest, TakesAnOwnRateForNobodysUnlessTold) {
  groups_.push_back(document_.dict());
  document_.set(groups_[0], "default_config", document_.boolean(false));
  EXPECT_EQ(rule().own_rate, OwnRate::kUnknown);
  set("decoupled_lr", document_.real(1e-4));
  EXPECT_EQ(rule().own_rate, OwnRate::kTables);
  set("use_mup", document_.boolean(true));
  EXPECT_EQ(rule().own_rate, OwnRate::kMatrices);
  set("optimizer", document_.string("sgd"));
  EXPECT_EQ(rule().own_rate, OwnRate::kVectors);
}

}  // namespace
}  // namespace shardwright
