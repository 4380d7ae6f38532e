// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/error.h"

namespace shardwright {

/// Whether a code tells of files that could not be read, or of bytes that are no weights in any
/// container: where files say themselves what tensors they hold, such a defect hides tensors.
[[nodiscard]] constexpr bool is_of_storage_or_weights(Code code) {
  const int number = static_cast<int>(code);
  switch (number / 10) {
    case 20:  // limits
    case 21:  // zip archives
    case 22:  // pickles and torch's archives
    case 23:  // safetensors
      return true;
    default:
      return number / 100 == 1;  // storage
  }
}

}  // namespace shardwright
