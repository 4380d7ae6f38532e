// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads the factors of the low-rank adapters in a catalog, and DoRA's magnitudes: a number that is
/// NaN or infinite makes all weights so that it is multiplied into. What is trained whole is not
/// looked at, as a model's own weights are not. Error: kPayloadDamaged for each tensor that has
/// some, told to `defects`; those of reading. REQUIRES: tensors are raw; those of other encodings
/// are passed over.
[[nodiscard]] Status check_adapter_values(const Catalog& catalog, SourceFiles& files,
                                          Defects& defects);

}  // namespace shardwright
