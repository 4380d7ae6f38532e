// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Megatron-Core's zarr backend, its own until torch_dist took its place.
[[nodiscard]] const SourceFormat& zarr_source();

}  // namespace shardwright
