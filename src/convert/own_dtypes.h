// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Where a Hugging Face model's tensors keep their names in files of tensors: what its code
/// computes with in float32 keeps its dtype under `--dtype`. Error: kDtypeUnsupported for weights
/// that are stored as values and scales, of which such a cast would round the scales.
[[nodiscard]] Status keep_own_dtypes(Drafting& drafting);

/// Of drafts that `--dtype` has cast: what the model computes with in float32 has its own dtype
/// again, where the new one would round it. A note says what.
[[nodiscard]] Status restore_own_dtypes(Drafting& drafting);

}  // namespace shardwright
