// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

/// Whether a part of a name is what PEFT puts into it where it wraps a module: that of
/// `X.base_layer.weight`. Sources: PEFT's lora/layer.py, utils/other.py, trainable_tokens/layer.py.
[[nodiscard]] bool is_part_of_peft(std::string_view part);

/// Whether a part of a name is what FSDP, torch.compile or activation checkpointing put into it.
[[nodiscard]] bool is_module_wrapper(std::string_view part);
/// Whether a name has such a part.
[[nodiscard]] bool has_module_wrapper(std::string_view name);

/// A name without the parts that wrappers of a module put into it: FSDP, torch.compile, activation
/// checkpointing, PEFT.
[[nodiscard]] std::string without_module_wrappers(std::string_view name);

}  // namespace shardwright
