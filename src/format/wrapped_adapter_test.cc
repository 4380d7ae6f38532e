// SPDX-License-Identifier: Apache-2.0
#include "format/wrapped_adapter.h"

#include <gmock/gmock.h>

namespace shardwright {
namespace {

using ::testing::Eq;
using ::testing::Optional;

TEST(WrappedAdapter, NamesAreThoseOfPeftsFiles) {
  const std::pair<const char*, const char*> cases[] = {
      {"base_model.model.h.0.q.lora_A.default.weight", "base_model.model.h.0.q.lora_A.weight"},
      {"base_model.model.h.0.q.lora_B.default.bias", "base_model.model.h.0.q.lora_B.bias"},
      {"base_model.model.h.0.q.lora_B.weight", "base_model.model.h.0.q.lora_B.weight"},
      {"_fsdp_wrapped_module.base_model.model.h.0._fsdp_wrapped_module.q.lora_A.default.weight",
       "base_model.model.h.0.q.lora_A.weight"},
      {"module.base_model.model.q.lora_A.default.weight", "base_model.model.q.lora_A.weight"},
      {"base_model.model.e.lora_embedding_A.default", "base_model.model.e.lora_embedding_A"},
      {"base_model.model.q.lora_magnitude_vector.default.weight",
       "base_model.model.q.lora_magnitude_vector"},
      {"base_model.model.e.token_adapter.trainable_tokens_delta.default",
       "base_model.model.e.token_adapter.trainable_tokens_delta"},
      {"base_model.model.head.modules_to_save.default.weight", "base_model.model.head.weight"},
      {"base_model.model.head.modules_to_save.default.out.bias", "base_model.model.head.out.bias"},
  };
  for (const auto& [stored, expected] : cases) {
    EXPECT_THAT(peft_name_of_wrapped(stored), Optional(Eq(expected))) << stored;
  }
}

TEST(WrappedAdapter, OtherNamesAreNone) {
  for (const char* name :
       {"base_model.model.q.base_layer.weight", "base_model.model.norm.weight",
        "base_model.model.q.lora_A.other.weight", "base_model.model.q.lora_A.default",
        "base_model.model.q.lora_E.default.weight", "q.lora_A.default.weight",
        "base_model.model.lora_A.default.weight", "base_model.model.head.modules_to_save.x.weight",
        "base_model.model.head.original_module.weight", "base_model.model..lora_A.default.weight",
        "lora_unet_mid.lora_down.weight", ""}) {
    EXPECT_EQ(peft_name_of_wrapped(name), std::nullopt) << name;
  }
}

TEST(WrappedAdapter, IsAloneWhereNothingElseIsThere) {
  Catalog catalog;
  EXPECT_FALSE(holds_adapter_alone(catalog));
  catalog.tensors.push_back(
      {{"base_model.model.q.lora_A.default.weight", DType::kF32, {2, 4}}, ChunkList(2)});
  EXPECT_TRUE(holds_adapter_alone(catalog));
  catalog.tensors.push_back(
      {{"optimizer.state.exp_avg.base_model.model.q.lora_A.default.weight", DType::kF32, {2, 4}},
       ChunkList(2)});
  EXPECT_TRUE(holds_adapter_alone(catalog)) << "states count for nothing";
  catalog.tensors.push_back({{"base_model.model.norm.weight", DType::kF32, {4}}, ChunkList(1)});
  EXPECT_FALSE(holds_adapter_alone(catalog));
}

}  // namespace
}  // namespace shardwright
