// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// A name of a Megatron model that lies inside a wrapper (the LLaVAModel of Megatron-Bridge's
/// Nemotron VL, the thinker of Qwen's omni models, the module of its Wan) as it would be without:
/// `language_model.…`, `visual.…`. Other names, which are borrowed too, as they are.
[[nodiscard]] std::string_view unwrapped(std::string_view name);

/// What the names of the language model begin with, with a dot at its end, if that name is one of
/// a multimodal model's language model; empty otherwise.
[[nodiscard]] std::string_view language_prefix(std::string_view name);

/// A name of a multimodal model as it is inside its parts: `decoder.…` of
/// `language_model.decoder.…` and of `thinker.vision_model.decoder.…`. Other names as they are.
[[nodiscard]] std::string_view without_parts(std::string_view name);

}  // namespace shardwright
