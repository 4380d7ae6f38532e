// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "io/source_files.h"
#include "plan/canonical.h"
#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Refuses Megatron tensors that HF has no place for and that are not what their family says they
/// always are: leaving them out would change the model. Reads those tensors whole. Error:
/// kUnmatchedSource with name and place.
[[nodiscard]] Status check_constants(const Correspondence& correspondence,
                                     std::span<const CanonicalTensor> canonical,
                                     const Catalog& catalog, SourceFiles& files);

}  // namespace shardwright
