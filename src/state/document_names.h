// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// Megatron-Core's state of a checkpoint besides its tensors.
inline constexpr std::string_view kCommonStateFile = "common.pt";
/// Where Megatron-Bridge describes a run.
inline constexpr std::string_view kRunConfigFile = "run_config.yaml";
/// Where NeMo 2 does, as messages call it.
inline constexpr std::string_view kNemoContextFile = "context/model.yaml";
/// Arguments that begin so are those of its `model_transform`: a run's adapters.
inline constexpr std::string_view kNemoTransform = "model_transform.";
/// Where a Hugging Face model says what it is.
inline constexpr std::string_view kHfConfigFile = "config.json";
/// In a Megatron checkpoint: the tensors of the Hugging Face model that it was made of.
inline constexpr std::string_view kCarriedKeysFile = "hf/source_keys.json";

}  // namespace shardwright
