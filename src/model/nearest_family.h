// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/config.h"
#include "model/mapping_file.h"

namespace shardwright {

/// For models of which no mapping speaks: the family that fits best, and what stands in its way:
/// `nearest is llama, which takes 12 of 14 tensors, leaves ..., misses ...`. Empty where none takes
/// half of them.
///
/// Families that fit alike are ranked by what config.json calls the model and by its keys; they are
/// all named, with what each would write otherwise (arguments, rows of tensors), because a wrong
/// choice among them converts without an error. The order of the mappings does not matter.
[[nodiscard]] std::string nearest_family(std::span<const Mapping> mappings, const HfConfig& config,
                                         std::span<const TensorDesc> hf);

}  // namespace shardwright
