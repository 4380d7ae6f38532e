// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/draft.h"

namespace shardwright {

/// Rows [begin, begin + rows) of a tensor. REQUIRES: it has them.
[[nodiscard]] DraftTensor slice_rows(const DraftTensor& tensor, std::int64_t begin,
                                     std::int64_t rows);

/// Row `index` as a tensor of one axis less. REQUIRES: it has that row.
[[nodiscard]] DraftTensor take_row(const DraftTensor& tensor, std::int64_t index);

/// Puts the rows of `part` behind those of `whole`. REQUIRES: both are made alike, but for the
/// number of their rows.
void append_rows(DraftTensor& whole, const DraftTensor& part);

}  // namespace shardwright
