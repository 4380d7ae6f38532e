// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// torch_dist of a MIMO model: each component on ranks of its own.
[[nodiscard]] const Target& mimo_target();

}  // namespace shardwright
