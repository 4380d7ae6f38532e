// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "codec/torch_file.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The extents of a torch.Size, a tuple or a list of numbers. nullopt for anything else, for more
/// axes than a tensor has and for negative extents.
[[nodiscard]] std::optional<Dims> extents_of(pickle::Value value);

/// The texts of a list or tuple; what is none is passed over.
[[nodiscard]] std::vector<std::string> texts_of(pickle::Value list);

/// The elements of a flat buffer. Error: kZeroLayout for a tensor that is not one dense axis.
[[nodiscard]] Result<LocatedTensor> locate_flat(const TorchFile& torch, pickle::Value tensor,
                                                const std::string& what);

}  // namespace shardwright
