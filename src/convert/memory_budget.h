// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"
#include "shardwright/plan.h"

namespace shardwright {

/// What a conversion keeps in memory, within what its request allows.
struct MemoryBudget {
  std::uint64_t held_bytes = 0;    ///< the program, catalogs and plan, however it runs
  std::uint64_t buffer_bytes = 0;  ///< of all threads together
  int threads = 1;

  [[nodiscard]] std::uint64_t bytes() const { return held_bytes + buffer_bytes; }
};

/// Shares out ConvertRequest::max_memory_bytes: fewer threads and smaller buffers where it is
/// scarce. Where nothing was asked for, that is 256 MiB, which are no reason to refuse a large
/// plan. Error: kLimit, with the least that is needed.
[[nodiscard]] Result<MemoryBudget> budget_of(const ConvertRequest& request,
                                             const Checkpoint& source, const Plan& plan);

}  // namespace shardwright
