// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "layout/mlite_layout.h"
#include "shardwright/catalog.h"
#include "shardwright/convert.h"

namespace shardwright {

/// Whether global_from_mlite can put an MLite checkpoint together, or what is lost is accepted.
/// Reads no payload. Errors: kLossySource, kUsage, as there.
[[nodiscard]] Status check_mlite(const Catalog& catalog, const SourceOptions& options);

/// The sizes that an MLite checkpoint was saved at. Errors: those of global_from_mlite for what
/// can't be put together.
[[nodiscard]] Result<MliteLayout> whole_mlite_layout(const Catalog& catalog,
                                                     const SourceOptions& options);

/// The model of an MLite checkpoint with experts by their global numbers, layers numbered through
/// and rows in their logical order: what its DCP tensors would be at EP 1, TP 1 and PP 1. Tensors
/// whose rows lie as they are pass through. REQUIRES: payloads are located.
///
/// Where that is not possible because a part is lost, or because sizes do not agree, and
/// SourceOptions::accept_loss is set, the catalog comes back as it is, and a note says what is
/// lost.
///
/// Errors: kLossySource where an early MLite lost a part (see MliteLoss) or a pipeline stage is
/// missing, kUsage where sizes do not agree, kUnmatchedSource for stages whose layers are numbered
/// in no known way.
[[nodiscard]] Result<Catalog> global_from_mlite(const Catalog& catalog,
                                                const SourceOptions& options,
                                                std::vector<std::string>& notes);

/// What is to be told where nobody puts the rows of fused tensors in the model's order, which only
/// its family's names do; empty where no tensor rank shared any out.
[[nodiscard]] std::string note_on_rows_of_ranks(const Catalog& catalog,
                                                const SourceOptions& options);

}  // namespace shardwright
