// SPDX-License-Identifier: Apache-2.0
#include "convert/shared_run.h"

#include <memory>
#include <optional>
#include <utility>

#include "convert/piece_helper.h"
#include "convert/piece_leader.h"
#include "convert/rank_jobs.h"
#include "convert/shared_reading.h"

namespace shardwright {

Result<PreparedConversion> prepare_shared_conversion(const ConvertRequest& request,
                                                     RankSession& session) {
  SharedReading reading(session);
  std::optional<PreparedConversion> prepared;
  const Status status = session.run([&]() -> Status {
    return reading.run([&]() -> Status {
      prepared = SW_TRY(prepare_conversion(request));
      return {};
    });
  });
  if (!status) return std::unexpected(status.error());
  return *std::move(prepared);
}

Result<ConvertReport> run_shared_conversion(const PreparedConversion& conversion,
                                            const RunOptions& options, RankSession& session,
                                            std::uint64_t least_piece_bytes) {
  const std::unique_ptr<JobSharing> jobs = jobs_of_ranks(session);
  if (!session.is_first()) {
    SW_TRY(help_with_conversion(conversion, session, *jobs));
    return ConvertReport{};
  }
  RunOptions obeying = options;
  obeying.sharing = jobs.get();
  obeying.cancelled = &session.stopped();
  session.obey(options.cancelled);
  PieceLeader leader(conversion, session, least_piece_bytes);
  ConvertReport report;
  const Status status = session.run([&]() -> Status {
    report = SW_TRY(run_conversion(conversion, obeying, leader));
    return {};
  });
  session.obey(nullptr);
  if (!status) return std::unexpected(status.error());
  return report;
}

}  // namespace shardwright
