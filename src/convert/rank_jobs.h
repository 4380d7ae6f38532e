// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "comm/rank_session.h"
#include "convert/shared_reading.h"
#include "exec/jobs.h"

namespace shardwright {

/// Jobs that the ranks of a session share out: rank 0 hands them out as ranks ask for them,
/// neighbours to one rank as long as nobody waits, and gathers what they found. Borrows both; made
/// and destroyed by the thread that talks. With the first jobs `reading` ends; it may be null.
[[nodiscard]] std::unique_ptr<JobSharing> jobs_of_ranks(RankSession& session,
                                                        SharedReading* reading = nullptr);

/// Waits until all ranks have come so far, so that what fails on one ends all. Nothing where
/// nobody shares. Error: kRanksDiffer where another rank has `seen` something else.
[[nodiscard]] Status wait_for_ranks(JobSharing* sharing, std::string_view seen);

}  // namespace shardwright
