// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// The tensors of a target that keeps the source's names. Errors: those of Target::draft_stored and
/// keep_own_dtypes.
[[nodiscard]] Status draft_with_kept_names(Drafting& drafting);

}  // namespace shardwright
