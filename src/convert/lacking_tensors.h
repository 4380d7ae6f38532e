// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Before anything is drafted: whether a Megatron model that becomes one again has what its family
/// needs, where a config.json, a flag or a record names that: a note says what it lacks, as
/// `verify` does.
[[nodiscard]] Status tell_lacking_tensors(Drafting& drafting);

}  // namespace shardwright
