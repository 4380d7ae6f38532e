// SPDX-License-Identifier: Apache-2.0
#include "format/seals.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(Seals, AppearBehindWhatTheyName) {
  EXPECT_EQ(seal_number("iter_0000001/__0_0.distcp"), 0);
  EXPECT_EQ(seal_number("model-00001-of-00002.safetensors"), 0);
  EXPECT_EQ(seal_number("diffusion_pytorch_model.safetensors"), 0);
  EXPECT_EQ(seal_number("adapter_model.safetensors"), 0);
  EXPECT_GT(seal_number("model.safetensors.index.json"), 0);
  EXPECT_GT(seal_number("diffusion_pytorch_model.safetensors.index.json"), 0);
  EXPECT_GT(seal_number("adapter_config.json"), 0);
  EXPECT_GT(seal_number("config.json"),
            seal_number("diffusion_pytorch_model.safetensors.index.json"));
  EXPECT_GT(seal_number("iter_0000001/.metadata"), seal_number("iter_0000001/metadata.json"));
  EXPECT_GT(seal_number("latest_checkpointed_iteration.txt"),
            seal_number("iter_0000001/.metadata"));
}

}  // namespace
}  // namespace shardwright
