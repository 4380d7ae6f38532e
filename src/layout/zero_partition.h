// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// A parameter of a group, as DeepSpeed's `param_shapes` lists it.
struct ZeroParameter {
  std::string name;
  Dims shape;
  std::int64_t padding = 0;  ///< elements behind it in a flat buffer of ZeRO 1 and 2
};

/// The parameters that ZeRO has flattened together, in their order.
using ZeroGroup = std::vector<ZeroParameter>;

/// Elements [from, to) of a parameter: they begin at element `at` of a rank's flat buffer.
struct ZeroPiece {
  std::size_t parameter = 0;  ///< counted through all groups
  std::size_t rank = 0;
  std::size_t group = 0;  ///< of the buffer
  std::int64_t at = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;

  friend bool operator==(const ZeroPiece&, const ZeroPiece&) = default;
};

/// The elements of each rank's flat buffers: sizes[rank][group].
using ZeroSizes = std::vector<std::vector<std::int64_t>>;

/// Where the parameters are under ZeRO 1 and 2: those of a group follow one another, and the ranks
/// have cut the whole into pieces. What is behind the last parameter is padding, up to a multiple
/// of two elements a rank. Errors: kZeroLayout for buffers that are too short, or longer than that.
[[nodiscard]] Result<std::vector<ZeroPiece>> cut_groups(std::span<const ZeroGroup> groups,
                                                        const ZeroSizes& sizes);

/// The same under ZeRO 3: each parameter is cut into as many pieces as there are ranks, the last of
/// them padded, and a rank's pieces follow one another through its buffers, which may end anywhere.
/// Errors: kZeroLayout for buffers that are not exactly as long.
[[nodiscard]] Result<std::vector<ZeroPiece>> cut_parameters(std::span<const ZeroGroup> groups,
                                                            const ZeroSizes& sizes);

}  // namespace shardwright
