// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// Whether the tensors are all that the model has: by the family's mapping where config.json or the
/// arguments tell the family, and by what they say about each other (layers counted through, as
/// many experts as the router has rows). Adds findings and what was proven.
[[nodiscard]] Status check_model(const Checkpoint& checkpoint, const ProofOptions& options,
                                 VerifyReport& report);

}  // namespace shardwright
