// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/torch_archive.h"

namespace shardwright {

/// A tensor of a pipeline's layer file.
struct LayerTensor {
  std::string name;
  LocatedTensor place;
  std::uint32_t file = 0;   ///< its number in the catalog
  std::string stored = {};  ///< its name there, once `name` is Megatron-Core's
};
using LayerTensors = std::vector<LayerTensor>;

}  // namespace shardwright
