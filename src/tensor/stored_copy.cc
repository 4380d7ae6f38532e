// SPDX-License-Identifier: Apache-2.0
#include "tensor/stored_copy.h"

namespace shardwright {

std::size_t copy_number(const StoredTensor& tensor, std::size_t chunk) {
  std::size_t number = 0;
  while (number + 1 < tensor.copies.size() && chunk >= tensor.copies[number].chunks) {
    chunk -= tensor.copies[number].chunks;
    ++number;
  }
  return number;
}

const StoredCopy* copy_of_chunk(const StoredTensor& tensor, std::size_t chunk) {
  return tensor.copies.empty() ? nullptr : &tensor.copies[copy_number(tensor, chunk)];
}

}  // namespace shardwright
