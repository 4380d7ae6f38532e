// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verify/view.h"

namespace shardwright {

/// Digests of a view's tensors.
[[nodiscard]] Result<HashReport> hash_view(const View& view, const ProofOptions& options);

}  // namespace shardwright
