// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

namespace shardwright {

/// Statistics of numbers that arrive one by one; those of parts can be put together. NaN and
/// infinities are counted and else left out.
struct Moments {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  double count = 0.0;  ///< of the finite ones
  int exponent = 0;    ///< the next two are of numbers divided by 2^exponent: large ones fit
  double mean = 0.0;
  double squares = 0.0;  ///< sum of squared distances from the mean
  double least = HUGE_VAL;
  double greatest = -HUGE_VAL;

  void take(double value);
  /// Takes in another part.
  void add(const Moments& part);
  /// Of the whole. REQUIRES: count > 0.
  [[nodiscard]] double average() const { return std::ldexp(mean, exponent); }
  /// Standard deviation, of the whole. REQUIRES: count > 0.
  [[nodiscard]] double deviation() const {
    return std::ldexp(std::sqrt(squares / count), exponent);
  }

 private:
  void make_room();
};

}  // namespace shardwright
