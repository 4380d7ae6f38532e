// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "codec/torch_file.h"

namespace shardwright {

/// A count that Python keeps as a number, and torch's optimizers as a float32 tensor of one
/// element: steps. nullopt for what is no whole number from 0 to 10^15. Errors: those of locating
/// and reading the tensor.
[[nodiscard]] Result<std::optional<std::int64_t>> read_torch_count(const ReadableFile& file,
                                                                   const TorchFile& torch,
                                                                   pickle::Value value);

}  // namespace shardwright
