// SPDX-License-Identifier: Apache-2.0
#include "verify/workload.h"

#include <algorithm>

#include "exec/threads.h"

namespace shardwright {
namespace {

constexpr std::size_t kAllBuffersBytes = std::size_t{64} << 20;
constexpr std::size_t kLeastBufferBytes = std::size_t{64} << 10;
// A larger buffer gains nothing and falls out of the cache.
constexpr std::size_t kMostBufferBytes = std::size_t{1} << 18;
constexpr std::size_t kMostRequestBytes = std::size_t{4} << 20;

constexpr std::uint64_t kSharedJobs = 256;
constexpr std::uint64_t kMostSharedJobBytes = std::uint64_t{16} << 20;

}  // namespace

Workers workers_of(const ProofOptions& options) {
  Workers workers;
  workers.threads = thread_count(options.threads);
  workers.sharing = options.run.sharing;
  workers.cancelled = options.run.cancelled;
  return workers;
}

std::uint64_t shared_job_bytes(std::uint64_t total) {
  return std::clamp<std::uint64_t>(total / kSharedJobs, kMostBufferBytes, kMostSharedJobBytes);
}

Workload::Workload(const ProofOptions& options, std::uint64_t total, bool asks_servers)
    : options_(options.run),
      total_(total),
      asks_servers_(asks_servers),
      workers_(workers_of(options)) {
  if (!options_.on_progress) return;
  workers_.on_progress = [this](std::uint64_t) {
    const std::uint64_t by_others =
        workers_.sharing == nullptr ? 0 : workers_.sharing->bytes_done_by_others();
    options_.on_progress({done_ + by_others, total_});
  };
}

std::size_t Workload::buffer_bytes(int parts) const {
  const std::size_t share =
      kAllBuffersBytes / (static_cast<std::size_t>(threads()) * static_cast<std::size_t>(parts));
  const std::size_t most = asks_servers_ ? kMostRequestBytes : kMostBufferBytes;
  return std::clamp(share, kLeastBufferBytes, most);
}

Status Workload::run(std::size_t count, const std::function<Worker()>& make_worker) {
  const std::vector<std::uint64_t> bytes(count, 0);
  Workers here = workers_;
  here.sharing = nullptr;
  const auto make_job_worker = [&]() -> JobWorker {
    return [worker = make_worker()](std::size_t job) -> Result<JobResult> {
      Status status = worker(job);
      if (!status) return std::unexpected(std::move(status).error());
      return JobResult{};
    };
  };
  SW_TRY(run_jobs({"reading", bytes}, here, make_job_worker));
  return {};
}

Result<std::vector<std::string>> Workload::share(std::string_view name,
                                                 std::span<const std::uint64_t> bytes,
                                                 const std::function<JobWorker()>& make_worker) {
  return run_jobs({name, bytes}, workers_, make_worker);
}

}  // namespace shardwright
