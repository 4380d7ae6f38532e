// SPDX-License-Identifier: Apache-2.0
#include "convert/replicas.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "base/fail.h"
#include "convert/same_bytes.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;

// Compares two stored pieces run by run: what lies between the runs of a strided piece belongs to
// other pieces.
class Comparison {
 public:
  // Without `files` it only counts.
  Comparison(const StoredTensor& tensor, std::span<const std::string> paths, ReplicaCheck check,
             SourceFiles* files)
      : tensor_(tensor), paths_(paths), check_(check), files_(files) {}

  Status compare(const Chunk& a, const Chunk& b, ReplicaReport& report) {
    const int element = bytes_of(tensor_.desc.dtype);
    const auto in_bytes = [&](const Chunk& chunk) {
      Dims strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
      for (int axis = 0; axis < strides.size(); ++axis) strides[axis] *= element;
      return strides;
    };
    loops_ = collapse({a.box.shape, in_bytes(a), in_bytes(b)});
    if (loops_.shape.empty()) loops_ = {{1}, {element}, {element}};
    const int last = loops_.shape.size() - 1;
    const bool joined =
        loops_.target_strides[last] == element && loops_.source_strides[last] == element;
    run_bytes_ = static_cast<std::uint64_t>(joined ? loops_.shape[last] * element : element);
    axes_ = joined ? last : last + 1;
    a_ = &a;
    b_ = &b;
    SW_TRY(walk(0, 0, 0, report));
    ++report.compared;
    return {};
  }

 private:
  Status walk(int axis, std::uint64_t in_a, std::uint64_t in_b, ReplicaReport& report) {
    if (axis == axes_) return compare_run(in_a, in_b, report);
    for (std::int64_t i = 0; i < loops_.shape[axis]; ++i) {
      SW_TRY(walk(axis + 1, in_a + static_cast<std::uint64_t>(i * loops_.target_strides[axis]),
                  in_b + static_cast<std::uint64_t>(i * loops_.source_strides[axis]), report));
    }
    return {};
  }

  Status compare_run(std::uint64_t in_a, std::uint64_t in_b, ReplicaReport& report) {
    if (check_ == ReplicaCheck::kAll || run_bytes_ <= 2 * kSampleBytes) {
      return compare_bytes(in_a, in_b, run_bytes_, report);
    }
    SW_TRY(compare_bytes(in_a, in_b, kSampleBytes, report));
    const std::uint64_t rest = run_bytes_ - kSampleBytes;
    return compare_bytes(in_a + rest, in_b + rest, kSampleBytes, report);
  }

  Status compare_bytes(std::uint64_t in_a, std::uint64_t in_b, std::uint64_t length,
                       ReplicaReport& report) {
    report.bytes += 2 * length;
    if (files_ == nullptr) return {};
    const FilePlace a{a_->file, a_->range.offset + in_a};
    const FilePlace b{b_->file, b_->range.offset + in_b};
    const auto difference = SW_TRY(first_difference(*files_, a, b, length));
    if (!difference) return {};
    return fail(
        Code::kReplicasDiffer,
        "tensor {}: found its replicas {} to differ, {}@{} and {}@{}; find out which is right, or "
        "take the first with --check-replicas none",
        tensor_.desc.name, to_string(a_->box), paths_[a.file], a.offset + *difference,
        paths_[b.file], b.offset + *difference);
  }

  const StoredTensor& tensor_;
  std::span<const std::string> paths_;
  ReplicaCheck check_;
  SourceFiles* files_;
  CopyLoops loops_;
  std::uint64_t run_bytes_ = 0;
  int axes_ = 0;
  const Chunk* a_ = nullptr;
  const Chunk* b_ = nullptr;
};

// Reads nothing without `files`.
Result<ReplicaReport> walk_tensor(const Catalog& catalog, const StoredTensor& tensor,
                                  ReplicaCheck check, SourceFiles* files) {
  ReplicaReport report;
  if (check == ReplicaCheck::kNone || tensor.chunks.size() < 2) return report;
  std::map<std::vector<std::int64_t>, std::size_t> first_at;  // by the box's corner
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Chunk chunk = tensor.chunks[i];
    if (chunk.box.is_empty()) continue;
    const auto [found, is_new] = first_at.emplace(
        std::vector<std::int64_t>(chunk.box.origin.begin(), chunk.box.origin.end()), i);
    if (is_new) continue;
    const Chunk original = tensor.chunks[found->second];
    if (!(original.box == chunk.box)) continue;  // overlapping: the plan's proof refuses it
    Comparison comparison(tensor, catalog.files, check, files);
    SW_TRY(comparison.compare(original, chunk, report));
  }
  return report;
}

Result<ReplicaReport> walk_replicas(const Catalog& catalog, ReplicaCheck check,
                                    SourceFiles* files) {
  ReplicaReport report;
  for (const StoredTensor& tensor : catalog.tensors) {
    const ReplicaReport of_tensor = SW_TRY(walk_tensor(catalog, tensor, check, files));
    report.compared += of_tensor.compared;
    report.bytes += of_tensor.bytes;
  }
  return report;
}

}  // namespace

ReplicaReport cost_of_replicas(const Catalog& catalog, ReplicaCheck check) {
  return walk_replicas(catalog, check, nullptr).value_or(ReplicaReport{});
}

Status check_replicas(const Catalog& catalog, ReplicaCheck check, SourceFiles& files) {
  SW_TRY(walk_replicas(catalog, check, &files));
  return {};
}

Result<ReplicaReport> check_replicas_of(const Catalog& catalog, std::size_t tensor,
                                        ReplicaCheck check, SourceFiles& files) {
  return walk_tensor(catalog, catalog.tensors[tensor], check, &files);
}

}  // namespace shardwright
