// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "layout/folder_groups.h"

namespace shardwright {

/// Which ranks' files to read, by folder name: the first, the last, and for each pipeline and each
/// further number one of the lowest tensor rank; at most `most`, then evenly spread. Everything
/// that a diagnosis needs is in these: stages differ along the second number, experts along the
/// last.
[[nodiscard]] std::vector<std::string> choose_samples(const std::vector<NumberedFolder>& models,
                                                      std::size_t most);

}  // namespace shardwright
