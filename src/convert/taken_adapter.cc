// SPDX-License-Identifier: Apache-2.0
#include "convert/taken_adapter.h"

namespace shardwright {

StoredTensor TakenAdapter::stored(std::uint32_t tensor) const {
  StoredTensor own = adapter.catalog.tensors[tensor];
  own.chunks.set_location(0, file, own.chunks.range(0));
  return own;
}

}  // namespace shardwright
