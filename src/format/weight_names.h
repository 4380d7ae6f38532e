// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// What the files of weights are called: `model-00001-of-00003.safetensors`, or as diffusers does.
inline constexpr std::string_view kModelStem = "model";
inline constexpr std::string_view kDiffusersStem = "diffusion_pytorch_model";

inline constexpr std::string_view kHfIndexFile = "model.safetensors.index.json";
inline constexpr std::string_view kDiffusersIndexFile =
    "diffusion_pytorch_model.safetensors.index.json";
inline constexpr std::array kHfIndexFiles = {kHfIndexFile, kDiffusersIndexFile};

/// What diffusers keeps beside the folders of a pipeline's parts.
inline constexpr std::string_view kPipelineFile = "model_index.json";

/// The index that the folder has; nullopt where it has none.
[[nodiscard]] std::optional<std::string_view> index_file_in(const Directory& directory);

/// The index of the files of that stem.
[[nodiscard]] std::string_view index_file_of(std::string_view stem);

/// The stem that a model with this config.json has; of a text that can't be read the usual one.
[[nodiscard]] std::string_view weight_stem_of(std::string_view config_json);

}  // namespace shardwright
