// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "verify/moments.h"
#include "verify/view.h"

namespace shardwright {

/// How many finite numbers there are of each size: bucket i counts those from 2^(i - 64) up to
/// twice that; zeros are in none, the first and the last bucket take what is beyond.
struct Magnitudes {
  static constexpr int kBuckets = 128;
  static constexpr int kLeastExponent = -64;
  std::array<std::uint64_t, kBuckets> counts{};

  void take(double value);
  void add(const Magnitudes& other);
};

struct TensorStatistics {
  Moments moments;
  Magnitudes magnitudes;
};

/// Statistics of each of a view's tensors, in their order; every byte is read once, in tiles.
/// Complex numbers count as two. Errors: those of reading.
[[nodiscard]] Result<std::vector<TensorStatistics>> statistics_of(const View& view,
                                                                  const ProofOptions& options);

}  // namespace shardwright
