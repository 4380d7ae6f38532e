// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert.h"

namespace shardwright {

/// The mapping files that a request may use: the built-in ones or those of models_dir, and its
/// map_files, which win over built-in ones of the same family.
[[nodiscard]] Result<std::vector<Mapping>> load_mappings(const ConvertRequest& request);

/// Those of them that `source` can be of by the request's family or the model's config.json, and
/// the request's map_files; all of them where nothing is named, or nothing that is known.
[[nodiscard]] Result<std::vector<Mapping>> load_mappings_of(const ConvertRequest& request,
                                                            const Checkpoint& source);

}  // namespace shardwright
