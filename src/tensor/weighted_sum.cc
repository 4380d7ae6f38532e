// SPDX-License-Identifier: Apache-2.0
#include "tensor/weighted_sum.h"

#include <algorithm>
#include <array>
#include <bit>

// This file is compiled with -ffp-contract=off, as low_rank.cc is.
namespace shardwright {

namespace {

constexpr std::int64_t kBlock = 1024;

bool is_finite(float number) {
  constexpr std::uint32_t kExponent = 0x7f800000U;
  return (std::bit_cast<std::uint32_t>(number) & kExponent) != kExponent;
}

}  // namespace

std::int64_t first_not_finite(std::int64_t count, const float* numbers) {
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, count);
    bool are_finite = true;
    for (std::int64_t i = begin; i < end; ++i) are_finite &= is_finite(numbers[i]);
    if (are_finite) continue;
    while (is_finite(numbers[begin])) ++begin;
    return begin;
  }
  return count;
}

std::int64_t begin_sum(std::int64_t count, float weight, const float* values, float* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] = weight * values[i];
  std::int64_t i = first_not_finite(count, sums);
  while (i < count && (is_finite(sums[i]) || !is_finite(values[i]))) ++i;
  return i;
}

std::int64_t add_to_sum(std::int64_t count, float weight, const float* values, float* sums) {
  std::array<float, kBlock> before;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    const float* value = values + begin;
    float* sum = sums + begin;
    std::copy_n(sum, size, before.data());
    for (std::int64_t i = 0; i < size; ++i) {
      const float product = weight * value[i];
      sum[i] += product;
    }
    for (std::int64_t i = first_not_finite(size, sum); i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (!is_finite(sum[i]) && is_finite(before[at]) && is_finite(value[i])) return begin + i;
    }
  }
  return count;
}

}  // namespace shardwright
