// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardwright/tensor.h"

namespace shardwright {

/// An array of zarr's second format: chunks of one shape in a grid, each in a file of its own, in
/// which those at the array's ends have that shape too. Source: the zarr v2 specification.
struct ZarrArray {
  DType dtype = DType::kU8;
  Dims shape;
  Dims chunk;  ///< the shape of each; no extent is 0
  bool is_column_major = false;

  /// How many chunks lie along each axis.
  [[nodiscard]] Dims grid() const;
  /// The file of the chunk in that place of the grid: `3.0.1`, and `0` of an array without axes.
  [[nodiscard]] std::string file_of(const Dims& place) const;
  /// The reverse; nothing for a name that is none of a chunk in the grid.
  [[nodiscard]] std::optional<Dims> place_of(std::string_view file) const;
  /// What of the array a chunk holds.
  [[nodiscard]] Box box_of(const Dims& place) const;
  /// Element strides within a chunk.
  [[nodiscard]] Dims strides() const;
};

/// What a `.zarray` says; `name` is for messages. Errors: kJsonCorrupt; kUnsupportedFormat for
/// another version, compression, filters, and types that no tensor has; kLimit.
[[nodiscard]] Result<ZarrArray> parse_zarray(std::string_view json, std::string_view name);

}  // namespace shardwright
