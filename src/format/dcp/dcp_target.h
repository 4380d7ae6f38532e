// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// A plain torch.distributed.checkpoint directory with the source's own names.
[[nodiscard]] const Target& dcp_target();

/// Lays a DCP directory out: axis 0 shared out over `request.shards` ranks by torch.chunk's
/// arithmetic, as FSDP2 does it. With `with_empty` ranks without rows write an empty item, which
/// Megatron-FSDP does not.
[[nodiscard]] Status plan_dcp(TargetParts& parts, const ConvertRequest& request, bool with_empty,
                              Plan& plan);

}  // namespace shardwright
