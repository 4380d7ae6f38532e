// SPDX-License-Identifier: Apache-2.0
#include "compare/repeated_shards.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/same_bytes.h"
#include "layout/shard_contents.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kFirstBytes = 4096;

// What one file holds of a tensor and no file before it.
using Shard = std::vector<Chunk>;

bool is_before(const Shard& a, const Shard& b) {
  return std::ranges::lexicographical_compare(a.front().box.origin, b.front().box.origin);
}

std::vector<Shard> shards_of(const StoredTensor& tensor) {
  std::map<std::uint32_t, Shard> by_file;
  std::set<std::vector<std::int64_t>> corners;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    // A replica lies where another chunk does. What is strided is part of a larger piece, of which
    // another part will do.
    if (chunk.box.is_empty() || !chunk.strides.empty()) continue;
    const Dims& corner = chunk.box.origin;
    if (corners.emplace(corner.begin(), corner.end()).second) by_file[chunk.file].push_back(chunk);
  }
  std::vector<Shard> shards;
  for (auto& [file, shard] : by_file) shards.push_back(std::move(shard));
  std::ranges::sort(shards, is_before);  // as ranks count them
  return shards;
}

bool have_one_shape(const std::vector<Shard>& shards) {
  return std::ranges::all_of(shards, [&](const Shard& shard) {
    return std::ranges::equal(
        shard, shards.front(), {}, [](const Chunk& c) { return c.box.shape; },
        [](const Chunk& c) { return c.box.shape; });
  });
}

class ShardCheck {
 public:
  explicit ShardCheck(SourceFiles& files) : files_(files) {}

  // The smallest divisor of their number with which the shards repeat.
  Result<std::size_t> period_of(const std::vector<Shard>& shards) {
    for (std::size_t period = 1; period < shards.size(); ++period) {
      if (shards.size() % period == 0 && SW_TRY(repeat(shards, period))) return period;
    }
    return shards.size();
  }

  // Weights that are all zero, as fresh adapters are, are alike on every rank and cut rightly.
  Result<bool> are_constants(std::span<const Shard> shards, int element) {
    for (const Shard& shard : shards) {
      for (const Chunk& chunk : shard) {
        const auto step = static_cast<std::uint64_t>(element);
        const FilePlace first{chunk.file, chunk.range.offset};
        const FilePlace second{chunk.file, chunk.range.offset + step};
        const auto differs =
            SW_TRY(first_difference(files_, first, second, chunk.range.length - step));
        if (differs) return false;
      }
    }
    return true;
  }

 private:
  Result<bool> repeat(const std::vector<Shard>& shards, std::size_t period) {
    // The first blocks of all before the whole of any.
    for (const std::uint64_t limit : {kFirstBytes, ~std::uint64_t{0}}) {
      for (std::size_t i = period; i < shards.size(); ++i) {
        if (!SW_TRY(are_same(shards[i % period], shards[i], limit))) return false;
      }
    }
    return true;
  }

  Result<bool> are_same(const Shard& a, const Shard& b, std::uint64_t limit) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto differs = SW_TRY(first_difference(files_, {a[i].file, a[i].range.offset},
                                                   {b[i].file, b[i].range.offset},
                                                   std::min(limit, a[i].range.length)));
      if (differs) return false;
    }
    return true;
  }

  SourceFiles& files_;
};

std::unexpected<Error> refuse(std::string_view tensor, std::size_t shards, std::size_t period) {
  if (period == 1) {
    return fail(Code::kReplicasDiffer,
                "tensor {}: found the same bytes in all {} tensor-parallel ranks, expected each to "
                "hold its own part: a replica was taken for a shard; see shardwright explain L20, "
                "or join them as they are with convert's --check-replicas none",
                tensor, shards);
  }
  return fail(Code::kReplicasDiffer,
              "tensor {}: found shards that repeat with period {} in {} tensor-parallel ranks, "
              "expected each to hold its own part: fewer ranks share it out; see shardwright "
              "explain L25, or join them as they are with convert's --check-replicas none",
              tensor, period, shards);
}

Status check_tensor(const StoredTensor& tensor, SourceFiles& files) {
  const std::vector<Shard> shards = shards_of(tensor);
  ShardCheck check(files);
  const std::size_t period = SW_TRY(check.period_of(shards));
  if (period == shards.size()) return {};
  const auto distinct = std::span(shards).first(period);
  if (SW_TRY(check.are_constants(distinct, bytes_of(tensor.desc.dtype)))) return {};
  return refuse(tensor.desc.name, shards.size(), period);
}

}  // namespace

Status check_shards(const Catalog& catalog, ReplicaCheck check, SourceFiles& files,
                    Defects& defects, const Workers& workers) {
  if (check == ReplicaCheck::kNone) return {};
  std::vector<const StoredTensor*> tensors;
  std::vector<std::uint64_t> bytes;
  for (const StoredTensor& tensor : catalog.tensors) {
    // Experts may be copies of one another, and Mamba's vectors begin alike on every rank.
    if (tensor.desc.shape.size() < 2 || is_expert_tensor(tensor.desc.name)) continue;
    const std::vector<Shard> shards = shards_of(tensor);
    if (shards.size() < 2 || !have_one_shape(shards)) continue;
    tensors.push_back(&tensor);
    bytes.push_back(2 * kFirstBytes * (shards.size() - 1));
  }
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      return result_of(check_tensor(*tensors[job], files), defects);
    };
  };
  const auto results = SW_TRY(run_jobs({"comparing shards", bytes}, workers, make_worker));
  for (const std::string& result : results) {
    Status status = SW_TRY(status_in(result));
    SW_TRY(defects.report(std::move(status)));
  }
  return {};
}

}  // namespace shardwright
