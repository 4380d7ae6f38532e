// SPDX-License-Identifier: Apache-2.0
#include "exec/finished_pieces.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "base/crc32.h"
#include "base/fail.h"
#include "exec/payload_place.h"
#include "exec/threads.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kReadBackBytes = std::uint64_t{1} << 20;
constexpr std::size_t kOpenLimit = 256;

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
                                     const Directory& target, int threads, FinishedPieces& finished,
                                     const ReadWatch& watch) {
  SourceFiles files(target, plan.target.files, kOpenLimit);
  const LastReading last(files);
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint64_t> kept{0};
  std::atomic<std::uint64_t> read{0};
  const auto check_some = [&]() -> Status {
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kReadBackBytes);
    for (std::uint32_t piece = next++; piece < pieces.size(); piece = next++) {
      if (!finished[piece]) continue;
      if (watch.cancelled != nullptr && *watch.cancelled) {
        return fail(Code::kCancelled, "stopped while what is written was read back");
      }
      if (SW_TRY(holds_all(plan, pieces.runs(piece), *finished[piece], files,
                           std::span(buffer.get(), kReadBackBytes), watch.digests))) {
        kept += pieces.bytes(piece);
      } else {
        finished[piece].reset();
      }
      read += pieces.bytes(piece);
    }
    return {};
  };
  const auto report = [&] {
    if (watch.on_progress) watch.on_progress(read);
  };
  SW_TRY(run_on_threads(threads, report, check_some));
  report();
  return kept.load();
}

}  // namespace shardwright
