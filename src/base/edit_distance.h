// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardwright {

/// The fewest single-character edits (insert, delete, replace, swap of neighbours) that make one
/// text the other. Time and memory are the product of the lengths: for short texts.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `name` was probably meant to be, or "" when none is near: at most a third of
/// its characters may differ. Longer inputs than 256 bytes are not compared, nor candidates behind
/// the first thousand. Borrows of `candidates`.
[[nodiscard]] std::string_view nearest_of(std::string_view name,
                                          std::span<const std::string_view> candidates);
[[nodiscard]] std::string_view nearest_of(std::string_view name,
                                          std::span<const std::string> candidates);

}  // namespace shardwright
