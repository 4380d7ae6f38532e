// SPDX-License-Identifier: Apache-2.0
#include "exec/finished_pieces.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32.h"
#include "exec/payload_place.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kReadBackBytes = std::uint64_t{1} << 20;
constexpr std::size_t kOpenLimit = 256;
// What a job finds whose piece is to be done again.
constexpr std::string_view kNotHeld = "-";

Result<bool> holds(const Plan& plan, const PieceRun& run, std::uint32_t crc, SourceFiles& files,
                   std::span<std::byte> buffer, PayloadDigests* digests) {
  const PayloadPlace place = SW_TRY(place_of(plan, run));
  std::uint32_t found = 0;
  for (std::uint64_t done = 0; done < run.length;) {
    const auto step = std::min<std::uint64_t>(buffer.size(), run.length - done);
    const std::span<std::byte> bytes = buffer.first(static_cast<std::size_t>(step));
    if (!files.read_at(place.file, place.offset + done, bytes)) return false;
    found = crc32(bytes, found);
    if (digests != nullptr) {
      digests->add({run.index, run.chunk, run.offset + done, step}, bytes);
    }
    done += step;
  }
  return found == crc;
}

Result<bool> holds_all(const Plan& plan, const std::vector<PieceRun>& runs, const PieceCrcs& crcs,
                       SourceFiles& files, std::span<std::byte> buffer, PayloadDigests* digests) {
  if (runs.size() != crcs.size()) return false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (SW_TRY(holds(plan, runs[i], crcs[i], files, buffer, digests))) continue;
    for (std::size_t read = 0; digests != nullptr && read <= i; ++read) digests->forget(runs[read]);
    return false;
  }
  return true;
}

}  // namespace

Result<std::uint64_t> check_finished(const Plan& plan, const PieceList& pieces,
                                     const Directory& target, const Workers& workers,
                                     FinishedPieces& finished, PayloadDigests* digests) {
  SourceFiles files(target, plan.target.files, kOpenLimit);
  const LastReading last(files);
  std::vector<std::uint32_t> todo;
  std::vector<std::uint64_t> bytes;
  for (std::uint32_t piece = 0; piece < pieces.size(); ++piece) {
    if (!finished[piece]) continue;
    todo.push_back(piece);
    bytes.push_back(pieces.bytes(piece));
  }
  const auto make_worker = [&]() -> JobWorker {
    std::shared_ptr<std::byte[]> buffer =
        std::make_unique_for_overwrite<std::byte[]>(kReadBackBytes);
    return [&, buffer](std::size_t job) -> Result<JobResult> {
      const std::uint32_t piece = todo[job];
      const bool holds = SW_TRY(holds_all(plan, pieces.runs(piece), *finished[piece], files,
                                          std::span(buffer.get(), kReadBackBytes), digests));
      return JobResult{holds ? "" : std::string(kNotHeld), false};
    };
  };
  const JobStep step{.name = "reading back what is written", .bytes = bytes};
  const std::vector<std::string> results = SW_TRY(run_jobs(step, workers, make_worker));
  std::uint64_t kept = 0;
  for (std::size_t job = 0; job < todo.size(); ++job) {
    if (results[job].empty()) {
      kept += bytes[job];
    } else {
      finished[todo[job]].reset();
    }
  }
  return kept;
}

}  // namespace shardwright
