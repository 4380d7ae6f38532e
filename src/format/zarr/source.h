// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Megatron-Core's zarr backend. It is recognised, to be named; opening fails with the way out.
[[nodiscard]] const SourceFormat& zarr_source();

}  // namespace shardwright
