// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// Whether it has optimizer states under other names than those of the states of the model's
/// tensors: in buckets, or as an unknown module's.
[[nodiscard]] bool has_stored_states(const HashReport& digests);

/// Compares the digests of a checkpoint with those that it should have. What is wrong is a finding;
/// if nothing is, that is proven.
void compare_digests_of(const HashReport& found, const HashReport& expected, VerifyReport& report);

}  // namespace shardwright
