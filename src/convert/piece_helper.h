// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/rank_session.h"
#include "exec/jobs.h"
#include "shardwright/convert.h"

namespace shardwright {

/// A rank of a conversion that rank 0 leads (PieceLeader): compares its share of what guards the
/// source (`jobs`), does the pieces that it is given and
/// makes them durable. What was prepared must be what rank 0 prepared. Errors: those of reading
/// and writing; kNotFound where rank 0's hidden folder is not on a file system that this rank sees;
/// kCancelled when all are to stop.
[[nodiscard]] Status help_with_conversion(const PreparedConversion& conversion,
                                          RankSession& session, JobSharing& jobs);

}  // namespace shardwright
