// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// The tensors under the names that they have.
[[nodiscard]] const Target& safetensors_target();

}  // namespace shardwright
