// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "format/target_format.h"

namespace shardwright {

/// Every format that is written, in the order in which help lists them.
[[nodiscard]] std::span<const Target* const> all_targets();

/// The format of that name. Error: kUsage with the nearest name.
[[nodiscard]] Result<const Target*> find_target(std::string_view name);

/// The first of those whose tensors are called so: what a step means that makes such a model.
[[nodiscard]] const Target& first_target_of(TargetNames names);

/// REQUIRES: the name is one of all_targets().
[[nodiscard]] const TargetTraits& traits_of(std::string_view name);

}  // namespace shardwright
