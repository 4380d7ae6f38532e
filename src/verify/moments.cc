// SPDX-License-Identifier: Apache-2.0
#include "verify/moments.h"

#include <algorithm>

namespace shardwright {

namespace {

// Squares of what is smaller, as many as there can be, add up to a finite number.
constexpr double kLarge = 0x1p450;
constexpr int kLargeExponent = 600;  // so much smaller the largest numbers are none of these

}  // namespace

void Moments::make_room() {
  if (exponent != 0) return;
  exponent = kLargeExponent;
  mean = std::ldexp(mean, -exponent);
  squares = std::ldexp(squares, -2 * exponent);
}

void Moments::take(double value) {
  nan += std::isnan(value) ? 1U : 0U;
  infinite += std::isinf(value) ? 1U : 0U;
  zero += value == 0.0 ? 1U : 0U;
  if (!std::isfinite(value)) return;
  least = std::min(least, value);
  greatest = std::max(greatest, value);
  if (std::fabs(value) > kLarge) make_room();
  if (exponent != 0) value = std::ldexp(value, -exponent);
  count += 1.0;
  const double delta = value - mean;
  mean += delta / count;
  squares += delta * (value - mean);
}

// Chan, Golub and LeVeque's way to join two parts.
void Moments::add(const Moments& part) {
  nan += part.nan;
  infinite += part.infinite;
  zero += part.zero;
  if (part.count == 0.0) return;
  Moments other = part;
  if (exponent != 0) other.make_room();
  if (other.exponent != 0) make_room();
  const double together = count + other.count;
  const double delta = other.mean - mean;
  mean += delta * other.count / together;
  squares += other.squares + delta * delta * count * other.count / together;
  count = together;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
}

}  // namespace shardwright
