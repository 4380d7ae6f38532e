// SPDX-License-Identifier: Apache-2.0
#include "verify/workload.h"

#include <algorithm>

#include "base/fail.h"
#include "exec/threads.h"

namespace shardwright {
namespace {

constexpr std::size_t kAllBuffersBytes = std::size_t{64} << 20;
constexpr std::size_t kLeastBufferBytes = std::size_t{64} << 10;
// A larger buffer gains nothing and falls out of the cache.
constexpr std::size_t kMostBufferBytes = std::size_t{1} << 18;

}  // namespace

Workload::Workload(const ProofOptions& options, std::uint64_t total)
    : options_(options.run), total_(total), threads_(thread_count(options.threads)) {}

std::size_t Workload::buffer_bytes(int parts) const {
  const std::size_t share =
      kAllBuffersBytes / (static_cast<std::size_t>(threads_) * static_cast<std::size_t>(parts));
  return std::clamp(share, kLeastBufferBytes, kMostBufferBytes);
}

Status Workload::work(std::size_t count, const Worker& worker) {
  while (!stop_) {
    if (options_.cancelled != nullptr && *options_.cancelled) {
      stop_ = true;
      return fail(Code::kCancelled, "stopped before everything was read");
    }
    const std::size_t job = next_++;
    if (job >= count) return {};
    Status status = worker(job);
    if (!status) {
      stop_ = true;
      return status;
    }
  }
  return {};
}

Status Workload::run(std::size_t count, const std::function<Worker()>& make_worker) {
  next_ = 0;
  const auto tell = [&] {
    if (options_.on_progress) options_.on_progress({done_, total_});
  };
  const int threads = static_cast<int>(
      std::min<std::size_t>(static_cast<std::size_t>(threads_), std::max<std::size_t>(count, 1)));
  SW_TRY(run_on_threads(threads, tell, [&]() -> Status { return work(count, make_worker()); }));
  tell();
  return {};
}

}  // namespace shardwright
