// SPDX-License-Identifier: Apache-2.0
#include "format/quantizer_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "layout/quantizer_value.h"

namespace shardwright {
namespace {

using testing::HasSubstr;

TEST(QuantizerValues, AreKnownByTheirModules) {
  const std::string module = "decoder.layers.0.mlp.linear_fc2.";
  for (const char* value : {"weight_quantizer._amax", "input_quantizer._pre_quant_scale",
                            "weight_quantizer.1._scale", "k_bmm_quantizer._amax"}) {
    EXPECT_TRUE(is_quantizer_value(module + value)) << value;
  }
  // An audio codec has tensors of its own behind such a name.
  for (const char* other : {"weight", "_extra_state", "quantizer._amax",
                            "acoustic_residual_vector_quantizer.layers.0.codebook.embed_sum"}) {
    EXPECT_FALSE(is_quantizer_value(module + other)) << other;
  }
  EXPECT_TRUE(is_smoothing_scale(module + "input_quantizer._pre_quant_scale"));
  EXPECT_FALSE(is_smoothing_scale(module + "input_quantizer._amax"));
}

TEST(QuantizerValues, AreLeftOutUnlessWeightsWereDividedByThem) {
  const auto stored = [](const char* name) {
    return StoredTensor{{name, DType::kF32, {2}}, ChunkList(1)};
  };
  Catalog catalog;
  catalog.tensors = {stored("a.weight_quantizer._amax"), stored("a.weight"),
                     stored("a.input_quantizer._amax")};
  Notes notes;
  leave_quantizer_values_out(catalog, notes);
  ASSERT_EQ(catalog.tensors.size(), 1u);
  EXPECT_EQ(catalog.tensors[0].desc.name, "a.weight");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("2 values of ModelOpt's quantizers are left out (a.weight_"));
  EXPECT_TRUE(check_not_smoothed(catalog));

  catalog.tensors.push_back(stored("a.input_quantizer._pre_quant_scale"));
  leave_quantizer_values_out(catalog, notes);
  EXPECT_EQ(catalog.tensors.size(), 2u);
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_THAT(check_not_smoothed(catalog).error().text(),
              HasSubstr("SW0301]: a.input_quantizer._pre_quant_scale: the weights beside it"));
}

}  // namespace
}  // namespace shardwright
