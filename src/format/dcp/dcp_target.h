// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/target_format.h"

namespace shardwright {

/// A plain torch.distributed.checkpoint directory with the source's own names.
[[nodiscard]] const Target& dcp_target();

/// The tensors of a target that keeps the source's own names and, for a DCP target, its opaque
/// entries with their places in the nested state dict. Those of an MLite source become what they
/// would be without expert, tensor and pipeline parallelism, in `catalog` too.
[[nodiscard]] Status draft_stored(const ConvertRequest& request, const Checkpoint& source,
                                  Catalog& catalog, TargetParts& parts,
                                  std::vector<std::string>& notes);

/// Lays a DCP directory out: axis 0 shared out over `request.shards` ranks by torch.chunk's
/// arithmetic, as FSDP2 does it. With `with_empty` ranks without rows write an empty item, which
/// Megatron-FSDP does not.
[[nodiscard]] Status plan_dcp(TargetParts& parts, const ConvertRequest& request, bool with_empty,
                              Plan& plan);

}  // namespace shardwright
