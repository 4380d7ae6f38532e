// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "layout/merged_placement.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// The rank that wrote a file, by torch's name for it: 3 of `step_2/__3_0.distcp`.
[[nodiscard]] std::optional<std::int64_t> rank_of_file(std::string_view path);

/// The ranks that share out a merged tensor, as they are numbered: FSDP's index before the others'.
struct MergedRanks {
  std::int64_t others = 1;   ///< EP and ETP, or TP
  std::int64_t columns = 1;  ///< how many of the others share out columns, the last ones
};

/// In which order the pieces of a merged tensor lie, by who wrote them: nothing else on disk tells.
/// kOutside also where both orders are one; nullopt where the files' names fit neither.
[[nodiscard]] std::optional<FsdpOrder> order_of_ranks(const Catalog& catalog,
                                                      const StoredTensor& tensor,
                                                      const MergedRanks& ranks);

}  // namespace shardwright
