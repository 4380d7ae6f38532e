// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/pickle_value.h"
#include "layout/optimizer_groups.h"

namespace shardwright {

/// What a group of an optimizer's state dict says of itself. NeMo's spellings are known too.
[[nodiscard]] OptimizerGroup read_param_group(pickle::Value group);

}  // namespace shardwright
