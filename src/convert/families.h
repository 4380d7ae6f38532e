// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/config.h"
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

/// The family that a request names, else the one of the model's config.json. Errors: those of
/// find_family.
[[nodiscard]] Result<const Mapping*> chosen_family(const ConvertRequest& request,
                                                   std::span<const Mapping> mappings,
                                                   const HfConfig& config);

}  // namespace shardwright
