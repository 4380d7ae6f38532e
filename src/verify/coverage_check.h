// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// What no chunk of a tensor holds, and what several do, as findings. `tensor`: one of the
/// catalog's. False where its shape has no size, which is a finding too.
bool check_coverage_of(const Catalog& catalog, const StoredTensor& tensor, VerifyReport& report);

}  // namespace shardwright
