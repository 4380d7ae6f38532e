// SPDX-License-Identifier: Apache-2.0
#include "verify/moments.h"

#include <algorithm>

namespace shardwright {

void Moments::take(double value) {
  nan += std::isnan(value) ? 1U : 0U;
  infinite += std::isinf(value) ? 1U : 0U;
  zero += value == 0.0 ? 1U : 0U;
  if (!std::isfinite(value)) return;
  count += 1.0;
  const double delta = value - mean;
  mean += delta / count;
  squares += delta * (value - mean);
  least = std::min(least, value);
  greatest = std::max(greatest, value);
}

// Chan, Golub and LeVeque's way to join two parts.
void Moments::add(const Moments& other) {
  nan += other.nan;
  infinite += other.infinite;
  zero += other.zero;
  if (other.count == 0.0) return;
  const double together = count + other.count;
  const double delta = other.mean - mean;
  mean += delta * other.count / together;
  squares += other.squares + delta * delta * count * other.count / together;
  count = together;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
}

}  // namespace shardwright
