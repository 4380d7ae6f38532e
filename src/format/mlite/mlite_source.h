// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/mlite_layout.h"
#include "shardwright/catalog.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Whether global_from_mlite can put an MLite checkpoint together, or what is lost is accepted.
/// Reads no payload. Errors: kLossySource, kUsage, as there.
[[nodiscard]] Status check_mlite(const Catalog& catalog, const SourceOptions& options);

/// The sizes that an MLite checkpoint was saved at. Errors: those of global_from_mlite for what
/// can't be put together.
[[nodiscard]] Result<MliteLayout> whole_mlite_layout(const Catalog& catalog,
                                                     const SourceOptions& options);

/// What becomes of the rows of fused tensors, which each tensor rank had a share of.
enum class RankRows : std::uint8_t {
  kStay,       ///< as the ranks had them: a note says so
  kAreSorted,  ///< the caller knows the family and puts them in the model's order
};

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
                                                std::vector<std::string>& notes,
                                                RankRows rows = RankRows::kStay);

}  // namespace shardwright
