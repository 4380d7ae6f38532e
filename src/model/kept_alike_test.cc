// SPDX-License-Identifier: Apache-2.0
#include "model/kept_alike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Mapping with_tower() {
  Mapping mapping;
  mapping.alike = {{"vision_tower.", {"vision_model.", "model.vision_model."}, false},
                   {"projector.", {"projector."}, false},
                   {"hf_extra.talker.", {"talker."}, true}};
  return mapping;
}

std::vector<std::string> lacking(Side side, std::vector<std::string> names,
                                 const std::string& gone = {},
                                 const Mapping& mapping = with_tower()) {
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) {
    if (name != gone) tensors.push_back({name, DType::kF32, {4, 4}});
  }
  const auto index = TensorIndex::make(tensors);
  if (!index) return {"not an index"};
  return lacking_parts(mapping, side, *index);
}

const std::vector<std::string> kHfNames = {"model.vision_model.layers.0.q.weight",
                                           "model.vision_model.layers.0.k.weight",
                                           "model.vision_model.layers.1.q.weight",
                                           "model.vision_model.layers.1.k.weight",
                                           "projector.linear.bias",
                                           "projector.linear.weight"};

TEST(KeptAlike, LacksWholeParts) {
  EXPECT_THAT(lacking(Side::kHf, kHfNames), IsEmpty());
  EXPECT_THAT(lacking(Side::kHf, {kHfNames.begin(), kHfNames.begin() + 4}),
              ElementsAre("projector.*"));
  EXPECT_THAT(lacking(Side::kMegatron, {"projector.linear.weight"}), ElementsAre("vision_tower.*"));
}

// One spelling of transformers has a module more in front.
TEST(KeptAlike, LacksWhatAPartAlwaysHolds) {
  Mapping mapping = with_tower();
  mapping.alike[0].holds = {{{"norm.weight"}}, {{"norm.bias"}}, {{"patch.weight", "conv.weight"}}};
  mapping.alike[2].holds = {{{"head.weight"}}};
  for (const std::string stem : {"model.vision_model.", "model.vision_model.wrapped."}) {
    const std::vector<std::string> names = {stem + "norm.weight", stem + "norm.bias",
                                            stem + "conv.weight", stem + "pool.norm.weight",
                                            "projector.linear.weight"};
    EXPECT_THAT(lacking(Side::kHf, names, {}, mapping), IsEmpty());
    EXPECT_THAT(lacking(Side::kHf, names, names[0], mapping), ElementsAre(names[0]));
    EXPECT_THAT(lacking(Side::kHf, names, names[1], mapping), ElementsAre(names[1]));
    EXPECT_THAT(lacking(Side::kHf, names, names[2], mapping), ElementsAre(stem + "patch.weight"));
  }
  const std::vector<std::string> canonical = {"vision_tower.norm.weight",
                                              "vision_tower.patch.weight",
                                              "projector.linear.weight", "hf_extra.talker.a"};
  EXPECT_THAT(lacking(Side::kMegatron, canonical, {}, mapping),
              ElementsAre("hf_extra.talker.head.weight", "vision_tower.norm.bias"));
}

TEST(KeptAlike, NamesWhatIsLostAsTheOthersAreSpelled) {
  Mapping mapping = with_tower();
  mapping.alike[0].holds = {{{"fc1.bias", "0.bias"}}, {{"fc2.bias", "2.bias"}}, {{"norm.bias"}}};
  for (const auto& [there, lost] :
       {std::pair{"fc2.bias", "fc1.bias"}, {"2.bias", "0.bias"}, {"pool.bias", "fc1.bias"}}) {
    const std::string stem = "model.vision_model.";
    const std::vector<std::string> names = {stem + there, stem + "norm.bias",
                                            "projector.linear.weight"};
    EXPECT_THAT(lacking(Side::kHf, names, {}, mapping), ::testing::Contains(stem + lost));
  }
}

TEST(KeptAlike, LacksWhatItsLayersAndBiasesShow) {
  EXPECT_THAT(lacking(Side::kHf, kHfNames, kHfNames[3]), ElementsAre(kHfNames[3]));
  EXPECT_THAT(lacking(Side::kHf, kHfNames, kHfNames[5]), ElementsAre(kHfNames[5]));
  // What the rules have is theirs to tell.
  std::vector<std::string> names = kHfNames;
  names.insert(names.end(), {"model.layers.0.q.weight", "model.layers.1.q.weight",
                             "model.layers.1.k.weight", "model.linear.bias"});
  EXPECT_THAT(lacking(Side::kHf, names), IsEmpty());
}

}  // namespace
}  // namespace shardwright
