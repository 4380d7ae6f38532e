// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// Whether a file of this name is the index of a model's files.
[[nodiscard]] bool is_index_file(std::string_view name);

/// The files that the folder's index names; none where there is none, or one that can't be read.
[[nodiscard]] std::set<std::string, std::less<>> indexed_files(const Directory& directory);

}  // namespace shardwright
