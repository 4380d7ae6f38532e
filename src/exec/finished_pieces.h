// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/jobs.h"
#include "exec/payload_digests.h"
#include "exec/piece_list.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The CRC-32s of what a piece wrote, in the order of PieceList::runs().
using PieceCrcs = std::vector<std::uint32_t>;

/// What is known of each piece of a list; nothing of those that are still to be done.
using FinishedPieces = std::vector<std::optional<PieceCrcs>>;

/// Reads what finished pieces wrote back and forgets those whose bytes are not what they were: a
/// power failure keeps what the disk had, whatever a journal says. Returns the bytes of those that
/// stay. A file that is missing or can't be read is one that was not written. `digests` is told of
/// what this process finds as it was written; may be null. Errors: those of run_jobs.
[[nodiscard]] Result<std::uint64_t> check_finished(const Plan& plan, const PieceList& pieces,
                                                   const Directory& target, const Workers& workers,
                                                   FinishedPieces& finished,
                                                   PayloadDigests* digests = nullptr);

}  // namespace shardwright
