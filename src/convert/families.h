// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/convert.h"

namespace shardwright {

/// The mapping files that a request may use: the built-in ones or those of models_dir, and its
/// map_files, which win over built-in ones of the same family.
[[nodiscard]] Result<std::vector<Mapping>> load_mappings(const ConvertRequest& request);

}  // namespace shardwright
