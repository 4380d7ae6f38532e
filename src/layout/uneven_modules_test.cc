// SPDX-License-Identifier: Apache-2.0
#include "layout/uneven_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> told_of(const std::vector<std::string>& names) {
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) tensors.push_back({name, DType::kBF16, {4}});
  return uneven_modules(tensors);
}

const std::vector<std::string> kHybrid = {"decoder.layers.0.mixer.A_log",
                                          "decoder.layers.0.mixer.D",
                                          "decoder.layers.0.mixer.in_proj.weight",
                                          "decoder.layers.1.self_attention.linear_qkv.weight",
                                          "decoder.layers.1.self_attention.linear_proj.weight",
                                          "decoder.layers.2.mixer.A_log",
                                          "decoder.layers.2.mixer.D",
                                          "decoder.layers.2.mixer.in_proj.weight"};

TEST(UnevenModules, AreNoneOfLayersOfSeveralKinds) {
  EXPECT_THAT(told_of(kHybrid), IsEmpty());
  EXPECT_THAT(
      told_of({"decoder.layers.0.mlp.linear_fc1.weight", "decoder.layers.0.mlp.linear_fc2.weight",
               "decoder.layers.1.mlp.router.weight",
               "decoder.layers.1.mlp.experts.linear_fc1.weight0"}),
      IsEmpty());
}

TEST(UnevenModules, LackWhatAnotherLayersModuleHas) {
  std::vector<std::string> names = kHybrid;
  names.erase(names.begin());
  EXPECT_THAT(told_of(names),
              ElementsAre("nothing is stored of decoder.layers.0.mixer.A_log, and layer 2 has the "
                          "like: see that no part of the model was lost"));
}

// Several layers that are alike are a kind of their own, and many tensors another module.
TEST(UnevenModules, AreAloneAndLackLittle) {
  std::vector<std::string> names = kHybrid;
  for (const char* layer : {"3", "4"}) {
    for (const char* name : {".mixer.D", ".mixer.in_proj.weight"}) {
      names.push_back(std::string("decoder.layers.") + layer + name);
    }
  }
  EXPECT_THAT(told_of(names), IsEmpty());
  EXPECT_THAT(told_of({"decoder.layers.0.mlp.a", "decoder.layers.1.mlp.a", "decoder.layers.1.mlp.b",
                       "decoder.layers.1.mlp.c", "decoder.layers.1.mlp.d"}),
              IsEmpty());
}

}  // namespace
}  // namespace shardwright
