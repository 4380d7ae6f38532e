// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// How neighbours along an axis share words: unsigned integers 32 bits, two values of fp4 a byte.
struct WordPacking {
  /// The axis whose neighbours share a word, the first one in its lowest bits. -1: values follow
  /// each other without words, the lowest bits of a byte first.
  int axis = -1;
  bool is_interleaved = false;  ///< of eight in a word, from the lowest: 0 2 4 6 1 3 5 7
};

/// What is subtracted from quantised integers: for element c the integer number sum over axes a of
/// (c[a] / block[a]) * stride[a] of a tensor, of as many bits as the values. Along the axis of
/// `words` block is how many share a word, and stride counts to the next word's first one.
struct ZeroPoints {
  std::uint32_t tensor = 0;  ///< index into Plan::source.tensors; one row-major chunk
  Dims block;
  Dims stride;
  WordPacking words;
  /// Added to each word, modulo 2^32: what overflows in one number carries into the next. 0 where
  /// they are not in words.
  std::uint32_t added = 0;
};

/// One number that every scale of a tensor is multiplied with, or divided by, in float32.
struct SecondScale {
  std::uint32_t tensor = 0;  ///< index into Plan::source.tensors; one element
  bool divides = false;
};

/// Along `axis` element c has the scales and zeros of group number groups[c]. One int32 for each
/// coordinate.
struct ColumnGroups {
  std::uint32_t tensor = 0;  ///< index into Plan::source.tensors; one row-major chunk
  int axis = 0;
};

/// A source tensor whose stored values mean something only together with another tensor's scales:
/// element c is the stored value times the scale number sum over axes a of (c[a] / block[a]) *
/// stride[a]. Of fp4 (`kF4E2M1X2`) and of integers the shape, the boxes and the strides of its
/// chunks count values, not the bytes that hold several of them.
struct QuantisedSource {
  std::uint32_t values = 0;  ///< index into Plan::source.tensors
  std::uint32_t scales = 0;  ///< likewise; one row-major chunk
  Dims block;                ///< per axis of the values: how many run on with one scale
  Dims stride;               ///< per axis of the values: scales from a block to the next
  /// 0: values are of their tensor's type (e4m3, fp4). 2, 4, 8: unsigned integers of so many bits.
  int bits = 0;
  /// Of integers and fp4. The stride of this axis is from a word to the next.
  WordPacking words = {};
  int zero = 0;  ///< subtracted from each integer; beside `zeros` nothing is
  std::optional<ZeroPoints> zeros = {};
  std::optional<SecondScale> second = {};
  std::optional<ColumnGroups> groups = {};
};

/// The tensors of Plan::source beside the values that a quantised one is made of.
[[nodiscard]] std::vector<std::uint32_t> companions_of(const QuantisedSource& quantised);

}  // namespace shardwright
