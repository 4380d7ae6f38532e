// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/catalog.h"

namespace shardwright {

/// The wrapper's name before all names of NeMo 2's model, and of Megatron-Bridge's Wan, and after
/// those of its states.
inline constexpr std::string_view kNemoPrefix = "module.";

/// Whether the model's tensors all have the prefix, and Megatron's names behind it.
[[nodiscard]] bool has_prefixed_names(const Catalog& catalog, std::string_view prefix);

/// Takes it off the names of tensors, states and objects:
/// `optimizer.state.exp_avg.module.decoder.x` becomes `optimizer.state.exp_avg.decoder.x`.
void take_prefix_off(std::string_view prefix, Catalog& catalog);

/// The other way, for one name.
void put_prefix_on(std::string_view prefix, std::string& name);

}  // namespace shardwright
