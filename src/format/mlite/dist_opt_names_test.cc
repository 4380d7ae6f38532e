// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/dist_opt_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shardwright {
namespace {

using ::testing::ElementsAre;

Catalog named_catalog(const std::vector<std::string>& names) {
  Catalog catalog;
  for (const std::string& name : names) {
    catalog.tensors.push_back({{name, DType::kBF16, {4, 4}}, ChunkList(2)});
  }
  return catalog;
}

std::vector<std::string> named(const std::vector<std::string>& names) {
  Catalog catalog = named_catalog(names);
  name_as_mlite(catalog);
  std::vector<std::string> result;
  for (const StoredTensor& tensor : catalog.tensors) result.push_back(tensor.desc.name);
  return result;
}

TEST(DistOptNames, AreKnownByGroupedExpertsOfAChunk) {
  const std::string expert = "layers.0.moe.experts.fc1.weight0";
  for (const std::string before :
       {"", "model0.", "model_pp1.", "model_pp1_vpp2.", "model.", "model_pp0.model."}) {
    EXPECT_TRUE(has_dist_opt_names(named_catalog({"norm.weight", before + expert}))) << before;
  }
  for (const std::string before : {"decoder.", "model_pp.", "model_ppx.", "modelling.", "x."}) {
    EXPECT_FALSE(has_dist_opt_names(named_catalog({before + expert}))) << before;
  }
  EXPECT_FALSE(has_dist_opt_names(named_catalog({"layers.0.moe.router.gate.weight"})));
}

TEST(DistOptNames, BecomeThoseOfStages) {
  EXPECT_THAT(named({"norm.weight", "layers.0.w"}),
              ElementsAre("model.norm.weight", "model.layers.0.w"));
  EXPECT_THAT(named({"model_pp0.layers.0.w", "model_pp1.layers.0.w"}),
              ElementsAre("model_pp0.layers.0.w", "model_pp1.layers.0.w"));
  EXPECT_THAT(named({"model0.layers.0.w", "model1.layers.0.w"}),
              ElementsAre("model_pp0.layers.0.w", "model_pp1.layers.0.w"));
  // Chunks of a stage are as many stages apart as there are. The embedding has no chunk.
  EXPECT_THAT(named({"model_pp0.embed.embedding.weight", "model_pp0_vpp0.a", "model_pp1_vpp0.a",
                     "model_pp0_vpp1.a", "model_pp1_vpp1.a"}),
              ElementsAre("model_pp0.embed.embedding.weight", "model_pp0.a", "model_pp1.a",
                          "model_pp2.a", "model_pp3.a"));
}

TEST(DistOptNames, OfStatesAreThoseOfTheirParameters) {
  EXPECT_THAT(
      named({"optimizer.state.exp_avg.layers.0.w", "optimizer.state.param.model_pp1.a"}),
      ElementsAre("optimizer.state.exp_avg.model.layers.0.w", "optimizer.state.param.model_pp1.a"));
}

}  // namespace
}  // namespace shardwright
