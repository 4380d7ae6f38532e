// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "layout/mlite_layout.h"
#include "shardwright/catalog.h"
#include "shardwright/convert.h"

namespace shardwright {

/// The model of an MLite checkpoint with experts by their global numbers, layers numbered through
/// and rows in their logical order: what its DCP tensors would be at EP 1, TP 1 and PP 1. Tensors
/// whose rows lie as they are pass through. REQUIRES: payloads are located.
///
/// Errors: kHole where an early MLite lost a part (see MliteLoss), kUsage where sizes do not
/// agree, kUnmatchedSource for stages whose layers are numbered in no known way.
[[nodiscard]] Result<Catalog> global_from_mlite(const Catalog& catalog,
                                                const ConvertRequest& request,
                                                std::vector<std::string>& notes);

}  // namespace shardwright
