// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "comm/rank_session.h"
#include "shardwright/convert.h"

namespace shardwright {

/// Smaller pieces of work are not worth a message.
inline constexpr std::uint64_t kLeastSharedPieceBytes = std::uint64_t{1} << 20;

/// prepare_conversion by all ranks of a session: rank 0 reads, the others plan the same from what
/// it read. Errors: besides those of prepare_conversion kRanksDiffer and kRankLost, and those of
/// other ranks, which they name.
[[nodiscard]] Result<PreparedConversion> prepare_shared_conversion(const ConvertRequest& request,
                                                                   RankSession& session);

/// run_conversion by all ranks of a session, each of which has prepared the same. All compare
/// what guards the source and write the output; rank 0 makes and publishes it. The report is rank
/// 0's; that of the others is empty. Errors: besides those of run_conversion kRanksDiffer and
/// kRankLost, and those of other ranks, which they name.
[[nodiscard]] Result<ConvertReport> run_shared_conversion(
    const PreparedConversion& conversion, const RunOptions& options, RankSession& session,
    std::uint64_t least_piece_bytes = kLeastSharedPieceBytes);

}  // namespace shardwright
