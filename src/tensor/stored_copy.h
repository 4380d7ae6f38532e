// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "shardwright/catalog.h"

namespace shardwright {

/// Which of StoredTensor::copies the chunk is of; 0 for a tensor that is stored under its own name
/// only.
[[nodiscard]] std::size_t copy_number(const StoredTensor& tensor, std::size_t chunk);

/// Whose the chunk is; null for a tensor that is stored under its own name only.
[[nodiscard]] const StoredCopy* copy_of_chunk(const StoredTensor& tensor, std::size_t chunk);

}  // namespace shardwright
