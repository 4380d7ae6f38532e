// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// What MLite saves: torch.distributed.checkpoint whose experts and stages have local numbers.
[[nodiscard]] const SourceFormat& mlite_source();

/// The same names in what Megatron-Core saves for MLite's optimizer `dist_opt`, states among them.
[[nodiscard]] const SourceFormat& mlite_dist_opt_source();

}  // namespace shardwright
