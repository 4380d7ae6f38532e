// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"
#include "shardwright/verify.h"

namespace shardwright {

/// Whether numbers of the adapters in a checkpoint are none. `lost`: what could not be read, and
/// was told. Errors: those of reading.
[[nodiscard]] Status check_adapter(const Checkpoint& checkpoint, const Defects& lost,
                                   VerifyReport& report);

}  // namespace shardwright
