// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "verify/tensor_source.h"

namespace shardwright {

/// A checkpoint by its own names. A tensor is located and proven whole when it is first read.
[[nodiscard]] std::unique_ptr<TensorSource> source_by_stored_names(Checkpoint checkpoint);

}  // namespace shardwright
