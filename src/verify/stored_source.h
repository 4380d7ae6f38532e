// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "verify/tensor_source.h"

namespace shardwright {

/// A checkpoint by its own names. A tensor is located and proven whole when it is first read.
/// `unreadable`: those that the checkpoint was opened without.
[[nodiscard]] std::unique_ptr<TensorSource> source_by_stored_names(
    Checkpoint checkpoint, std::map<std::string, Error, std::less<>> unreadable);

}  // namespace shardwright
