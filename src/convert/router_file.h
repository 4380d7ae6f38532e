// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shardwright/storage.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The first weights of routers, as a file that is made where it is read: the same bytes in any
/// order of reading and on any machine.
struct RouterWeights {
  std::vector<std::string> layers;  ///< one behind the other; what tells a layer's numbers apart
  std::int64_t per_layer = 0;       ///< numbers
  DType dtype = DType::kF32;
  double deviation = 0.02;
  std::int64_t seed = 0;
};

/// Number `index` of a layer is the sum of twelve uniform ones less six, times the deviation: what
/// is normal by that needs no function that machines round differently. The uniform ones are the
/// halves of SplitMix64's numbers 6 index + 1 to 6 index + 6 from a state that follows from the
/// seed and the CRC-32 of the layer's name. REQUIRES: a floating point dtype.
[[nodiscard]] std::unique_ptr<ReadableFile> make_router_file(std::string name,
                                                             RouterWeights weights);

}  // namespace shardwright
