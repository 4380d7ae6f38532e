// SPDX-License-Identifier: Apache-2.0
#include "verify/statistics.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/fail.h"
#include "exec/finish_reading.h"
#include "tensor/values.h"
#include "verify/tile_buffer.h"
#include "verify/workload.h"

namespace shardwright {
namespace {

// So many tiles are one job: a checkpoint of a terabyte has some hundred thousand jobs.
constexpr std::int64_t kTilesPerJob = 64;

struct StatisticsJob {
  std::size_t tensor;
  std::int64_t first;  // of its tiles
  std::int64_t end;
};

}  // namespace

void Magnitudes::take(double value) {
  if (value == 0.0 || !std::isfinite(value)) return;
  const int bucket = std::clamp(std::ilogb(value) - kLeastExponent, 0, kBuckets - 1);
  ++counts[static_cast<std::size_t>(bucket)];
}

void Magnitudes::add(const Magnitudes& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
}

Result<std::vector<TensorStatistics>> statistics_of(const View& view, const ProofOptions& options) {
  Workload workload(options, bytes_of(view), false);
  // Decoded values take eight bytes each, whatever they were.
  const std::size_t tile_bytes = workload.buffer_bytes(2) / 8;
  const std::size_t count = view.plan.target.tensors.size();
  std::vector<StatisticsJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t tiles = tiles_of(view, i, tile_bytes).count();
    for (std::int64_t tile = 0; tile < tiles; tile += kTilesPerJob) {
      jobs.push_back({i, tile, std::min(tile + kTilesPerJob, tiles)});
    }
  }
  const Lowering lowering(view.plan);
  std::vector<TensorStatistics> all(count);
  // Parts are put together in their order, so that sums are the same however threads run.
  std::vector<Moments> parts(jobs.size());
  std::mutex mutex;
  const auto make_worker = [&]() -> Workload::Worker {
    const auto buffer = std::make_shared<TileBuffer>(view, lowering, tile_bytes);
    const auto values = std::make_shared<std::vector<double>>();
    return [&, buffer, values](std::size_t number) -> Status {
      const StatisticsJob& job = jobs[number];
      const DType dtype = view.plan.target.tensors[job.tensor].desc.dtype;
      const TileGrid grid = tiles_of(view, job.tensor, tile_bytes);
      Magnitudes magnitudes;
      for (std::int64_t i = job.first; i < job.end; ++i) {
        const Box tile = grid.tile(i);
        const auto bytes = SW_TRY(buffer->read(job.tensor, tile));
        values->resize(static_cast<std::size_t>(tile.volume()) *
                       static_cast<std::size_t>(parts_of(dtype)));
        decode_values(dtype, bytes, *values);
        for (const double value : *values) {
          parts[number].take(value);
          magnitudes.take(value);
        }
        workload.add_bytes(bytes.size());
      }
      const std::scoped_lock lock(mutex);
      all[job.tensor].magnitudes.add(magnitudes);
      return {};
    };
  };
  SW_TRY(workload.run(jobs.size(), make_worker));
  SW_TRY(finish_reading(*view.checkpoint.files, workload.threads()));
  for (std::size_t i = 0; i < jobs.size(); ++i) all[jobs[i].tensor].moments.add(parts[i]);
  return all;
}

}  // namespace shardwright
