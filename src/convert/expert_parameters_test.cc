// SPDX-License-Identifier: Apache-2.0
#include "convert/expert_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace shardwright::experts_as_stored {
namespace {

using testing::ElementsAre;

// Of a source tensor of the same shape, in one view.
DraftTensor draft(const std::string& name, const Dims& shape) {
  DraftTensor tensor{{"base_model.model." + name, DType::kF32, shape}, {}, {}};
  tensor.recipe.views.push_back(
      {Box::whole(shape), 0, Dims::filled(shape.size(), 0), {0, 1, 2}, {1, 1, 1}});
  return tensor;
}

// For each element of a matrix the source's coordinates.
std::map<std::pair<std::int64_t, std::int64_t>, Dims> sources_of(const DraftTensor& tensor) {
  std::map<std::pair<std::int64_t, std::int64_t>, Dims> sources;
  for (const TensorView& view : tensor.recipe.views) {
    for (std::int64_t row = 0; row < view.box.shape[0]; ++row) {
      for (std::int64_t column = 0; column < view.box.shape[1]; ++column) {
        Dims at = view.source_origin;
        at[static_cast<int>(view.axis[0])] += row * view.step[0];
        at[static_cast<int>(view.axis[1])] += column * view.step[1];
        const std::pair place(view.box.origin[0] + row, view.box.origin[1] + column);
        EXPECT_TRUE(sources.emplace(place, at).second) << "made twice";
      }
    }
  }
  return sources;
}

TEST(ExpertParameters, AreStoredAsPeftStoresThem) {
  constexpr std::int64_t kExperts = 3;
  constexpr std::int64_t kRank = 2;
  std::vector<DraftTensor> tensors = {
      draft("model.layers.0.mlp.experts.gate_up_proj.lora_A.weight", {kExperts, kRank, 5}),
      draft("model.layers.0.mlp.experts.gate_up_proj.lora_B.weight", {kExperts, 4, kRank})};
  store_expert_parameters(tensors);
  EXPECT_EQ(tensors[0].desc.name, "base_model.model.model.layers.0.mlp.experts.lora_A.weight");
  EXPECT_EQ(tensors[0].desc.shape, (Dims{kExperts * kRank, 5}));
  EXPECT_EQ(tensors[1].desc.shape, (Dims{4, kRank * kExperts}));
  const auto in = sources_of(tensors[0]);
  const auto out = sources_of(tensors[1]);
  EXPECT_EQ(in.size(), 30U);
  EXPECT_EQ(out.size(), 24U);
  for (const auto& [place, at] : in) {
    EXPECT_EQ(at, (Dims{place.first / kRank, place.first % kRank, place.second}));
  }
  for (const auto& [place, at] : out) {
    EXPECT_EQ(at, (Dims{place.second % kExperts, place.first, place.second / kExperts}));
  }
}

// The wrapper of the last parameter is the outermost one, in each layer by itself.
TEST(ExpertParameters, LieInOneAnother) {
  std::vector<DraftTensor> tensors = {draft("a.experts.gate_up_proj.lora_A.weight", {2, 1, 5}),
                                      draft("a.experts.down_proj.lora_B.weight", {2, 5, 1}),
                                      draft("b.mlp.experts.gate_up_proj.lora_A.weight", {2, 1, 5}),
                                      draft("a.experts.3.down_proj.lora_A.weight", {2, 1, 5}),
                                      draft("a.o_proj.lora_A.weight", {2, 1, 5})};
  EXPECT_THAT(
      expert_parameters(tensors),
      ElementsAre("a.experts.down_proj", "a.experts.gate_up_proj", "b.mlp.experts.gate_up_proj"))
      << "whole names, for layers differ";
  EXPECT_THAT(expert_parameters({tensors[0], tensors[2]}),
              ElementsAre("a.experts.gate_up_proj", "mlp.experts.gate_up_proj"));
  store_expert_parameters(tensors);
  std::vector<std::string> names;
  for (const DraftTensor& tensor : tensors) names.push_back(tensor.desc.name.substr(17));
  EXPECT_THAT(names, ElementsAre("a.experts.base_layer.lora_A.weight", "a.experts.lora_B.weight",
                                 "b.mlp.experts.lora_A.weight",
                                 "a.experts.3.down_proj.lora_A.weight", "a.o_proj.lora_A.weight"));
  EXPECT_EQ(tensors[4].desc.shape, (Dims{2, 1, 5}));
}

}  // namespace
}  // namespace shardwright::experts_as_stored
