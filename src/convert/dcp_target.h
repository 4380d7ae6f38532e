// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/target.h"

namespace shardwright {

/// The tensors and opaque entries of a DCP target: the source's own, under their own names, with
/// their places in the nested state dict. Those of an MLite source become what they would be
/// without expert, tensor and pipeline parallelism, in `catalog` too.
[[nodiscard]] Status draft_dcp(const ConvertRequest& request, const Checkpoint& source,
                               Catalog& catalog, TargetParts& parts,
                               std::vector<std::string>& notes);

}  // namespace shardwright
