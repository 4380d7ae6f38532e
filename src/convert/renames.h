// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/draft.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// For each draft the source tensors that it is made of, each once, a quantised tensor's scales
/// behind its values; of a sum those of its first term. `plan` has no source yet. `stored_names`
/// are those of the source's tensors where the model calls them otherwise, else it is empty.
[[nodiscard]] std::vector<RenamedTensor> renames_of(std::span<const DraftTensor> drafts,
                                                    const Plan& plan, const Catalog& source,
                                                    std::span<const std::string> stored_names);

}  // namespace shardwright
