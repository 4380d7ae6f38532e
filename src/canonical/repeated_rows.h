// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/source_files.h"
#include "plan/canonical.h"
#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// Compares, bit by bit, what Megatron holds several times and the model once: of tensors that have
/// such rows, the first go back alone. Error: kUnmatchedSource naming the first that differ; where
/// the caller `accepts_loss` that is a note.
[[nodiscard]] Status check_repeated_rows(const Correspondence& correspondence,
                                         std::span<const CanonicalTensor> canonical,
                                         const Catalog& catalog, bool accepts_loss,
                                         SourceFiles& files, std::vector<std::string>& notes);

}  // namespace shardwright
