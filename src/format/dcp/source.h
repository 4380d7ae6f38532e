// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Plain torch.distributed.checkpoint: `.metadata`, or `__N.metadata` of each rank.
[[nodiscard]] const SourceFormat& dcp_source();

}  // namespace shardwright
