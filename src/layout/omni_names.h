// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

/// The name that an ordinary vision-language model gives a tensor of a model whose parts LoongForge
/// has put together: `encoder_model.image_encoder.x` is `vision_model.x`,
/// `encoder_model.image_projector.x` is `adapter.x`, `foundation_model.x` is `language_model.x`,
/// and the embedding that the encoders have too is the language model's. Other names come back as
/// they are. Source: tools/convert_checkpoint/mcore/merge_megatron.py of LoongForge.
[[nodiscard]] std::string core_name_of_omni(std::string_view name);

}  // namespace shardwright
