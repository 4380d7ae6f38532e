// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/draft.h"
#include "shardwright/convert.h"

namespace shardwright {

/// For each draft the source tensors that it is made of, each once, a quantised tensor's scales
/// behind its values. `stored_names` are those of the source's tensors where the model calls them
/// otherwise, else it is empty.
[[nodiscard]] std::vector<RenamedTensor> renames_of(std::span<const DraftTensor> drafts,
                                                    std::span<const QuantisedSource> quantised,
                                                    const Catalog& source,
                                                    std::span<const std::string> stored_names);

}  // namespace shardwright
