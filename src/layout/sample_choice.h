// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "layout/folder_groups.h"

namespace shardwright {

/// So many are read all: a file that was copied over another shows in itself alone.
inline constexpr std::size_t kFewFolders = 16;

/// Which ranks' files to read, by folder name: all of a few; of more the first, the last, and for
/// each pipeline and each further number one of the lowest tensor rank; at most `most`, then evenly
/// spread. Everything that a diagnosis needs is in these: stages differ along the second number,
/// experts along the last.
[[nodiscard]] std::vector<std::string> choose_samples(const std::vector<NumberedFolder>& models,
                                                      std::size_t most);

}  // namespace shardwright
