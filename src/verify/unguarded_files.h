// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// The names of the files that tensors and opaque entries lie in: a catalog has others too, such as
/// a common.pt. Borrows.
[[nodiscard]] std::set<std::string_view> files_of_chunks(const Catalog& catalog);

/// The files of a checkpoint's folder in which a flipped bit would not be noticed: not those in
/// `guarded`, whose digests are compared, nor archives, whose records have CRC-32s, nor what is of
/// no checkpoint (hidden files). Sorted.
[[nodiscard]] std::vector<std::string> unguarded_files(
    const Checkpoint& checkpoint, const std::set<std::string, std::less<>>& guarded);

/// `a, b and 7 others`. REQUIRES: not empty.
[[nodiscard]] std::string first_names(std::span<const std::string> names);

}  // namespace shardwright
