// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/pickle_value.h"

namespace shardwright {

/// Whether each of an optimizer's parameter groups, and there are some, has `betas` and `eps`, as
/// those of Adam and its kin do, which keep two moments of each parameter.
[[nodiscard]] bool are_adam_groups(pickle::Value groups);

}  // namespace shardwright
