// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compare/listed_digests.h"
#include "exec/execute.h"
#include "exec/finished_pieces.h"
#include "io/publish.h"
#include "shardwright/convert.h"

namespace shardwright {

// The steps that a run which does everything, one by several ranks and one in parts have in common.

/// Tells that a phase begins, if anybody wants to know.
void begin_phase(const RunOptions& options, RunPhase phase, std::uint64_t bytes);

/// Begins the phase in which finished pieces are read back; gives who does that.
[[nodiscard]] Workers begin_reading_back(const PreparedConversion& conversion,
                                         const RunOptions& options, const PieceList& pieces,
                                         const FinishedPieces& finished);

/// Compares what guards the source. What it returns is ConvertReport::notes. Errors: those of
/// check_source.
[[nodiscard]] Result<std::vector<std::string>> compare_source(const PreparedConversion& conversion,
                                                              const RunOptions& options);

/// How the output is published, but for the hidden folder. Borrows both; `leftovers` gets the paths
/// that could not be removed.
[[nodiscard]] PublishOptions publish_options(const PreparedConversion& conversion,
                                             std::vector<std::string>& leftovers);

/// Threads, buffers and who stops it. Errors: those of budget_of.
[[nodiscard]] Result<ExecuteOptions> execute_options(const PreparedConversion& conversion,
                                                     const RunOptions& options);

/// What the digests of payloads are gathered in; null where none are asked for. Borrows the plan.
[[nodiscard]] std::unique_ptr<PayloadDigests> digests_for(const PreparedConversion& conversion);

/// Whether all that is written is read for the sake of its SHA-256.
[[nodiscard]] bool hashes_output(const ConvertRequest& request);

/// The files of digests and of a signature that are written beside the plan's own, whose sizes
/// nobody knows before.
[[nodiscard]] std::vector<std::string> guard_paths(const PreparedConversion& conversion);

/// The SHA-256 of all files that it is made of, by whoever `options` says; `directory` has all of
/// them. Errors: those of run_jobs and of reading.
[[nodiscard]] Result<std::vector<ListedDigest>> hash_output(const PreparedConversion& conversion,
                                                            const RunOptions& options,
                                                            const Directory& directory);

/// Whether the work may still be published. Error: kCancelled.
[[nodiscard]] Status check_not_cancelled(const RunOptions& options);

/// All is written: sees to it that the source is what it was, adds digests where they are asked for
/// (`digests` has what is known of them, and is null where they are not) and lets the output
/// appear. Its journals stay until all is durable, and come back where it does not appear.
/// `before_it_appears` (may be empty) is called before they go. Errors: kCancelled, kSourceChanged
/// and those of Publication::commit.
[[nodiscard]] Status publish_output(const PreparedConversion& conversion, const RunOptions& options,
                                    Publication& publication, const PayloadDigests* digests,
                                    const std::function<Status()>& before_it_appears = {});

}  // namespace shardwright
