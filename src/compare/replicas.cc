// SPDX-License-Identifier: Apache-2.0
#include "compare/replicas.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "base/fail.h"
#include "dcp/named_replicas.h"
#include "format/tensor_ranks.h"
#include "io/same_bytes.h"
#include "layout/expert_names.h"
#include "tensor/stored_copy.h"
#include "tensor/strided_copy.h"
#include "tensor/values.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;

// The index, in its tensor, of the element that lies `elements` behind the first of a chunk.
Dims index_in_tensor(const Chunk& chunk, std::uint64_t elements) {
  const Dims strides = chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides;
  std::vector<int> axes(static_cast<std::size_t>(strides.size()));
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::stable_sort(axes, std::ranges::greater(), [&](int axis) { return strides[axis]; });
  auto rest = static_cast<std::int64_t>(elements);
  Dims index = chunk.box.origin;
  for (const int axis : axes) {
    if (strides[axis] <= 0 || chunk.box.shape[axis] <= 1) continue;
    const std::int64_t step = std::min(rest / strides[axis], chunk.box.shape[axis] - 1);
    index[axis] += step;
    rest -= step * strides[axis];
  }
  return index;
}

// What two chunks hold of one element, as numbers, or as bytes where those look alike.
std::pair<std::string, std::string> texts_of(DType dtype, std::span<const std::byte> a,
                                             std::span<const std::byte> b) {
  std::pair<std::string, std::string> texts{value_text(dtype, a), value_text(dtype, b)};
  if (texts.first != texts.second) return texts;
  const auto add_bytes = [](std::string& text, std::span<const std::byte> bytes) {
    text += " (0x";
    for (std::size_t i = bytes.size(); i-- > 0;) {
      text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
    }
    text += ")";
  };
  add_bytes(texts.first, a);
  add_bytes(texts.second, b);
  return texts;
}

// Experts have an axis or a number in the names that are understood.
bool may_be_of_experts(std::string_view name) {
  return name.contains(".experts.") && !is_of_routed_experts(name);
}

// Compares two stored pieces run by run: what lies between the runs of a strided piece belongs to
// other pieces.
class Comparison {
 public:
  // Without `files` it only counts.
  Comparison(const StoredTensor& tensor, std::span<const std::string> paths, ReplicaCheck check,
             SourceFiles* files)
      : tensor_(tensor), paths_(paths), check_(check), files_(files) {}

  // The pieces by their numbers.
  Status compare(std::size_t first, std::size_t second, ReplicaReport& report) {
    const Chunk a = tensor_.chunks[first];
    const Chunk b = tensor_.chunks[second];
    first_ = first;
    second_ = second;
    const int element = bytes_of(tensor_.desc.dtype);
    const auto in_bytes = [&](const Chunk& chunk) {
      return byte_strides(
          chunk.strides.empty() ? row_major_strides(chunk.box.shape) : chunk.strides, element);
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
    return differ(in_a + *difference, in_b + *difference);
  }

  // At a byte of each.
  Status differ(std::uint64_t in_a, std::uint64_t in_b) {
    const auto size = static_cast<std::size_t>(bytes_of(tensor_.desc.dtype));
    const std::uint64_t within = in_a % size;
    const FilePlace a{a_->file, a_->range.offset + in_a - within};
    const FilePlace b{b_->file, b_->range.offset + in_b - within};
    std::vector<std::byte> left(size);
    std::vector<std::byte> right(size);
    SW_TRY(files_->read_at(a.file, a.offset, left));
    SW_TRY(files_->read_at(b.file, b.offset, right));
    const auto texts = texts_of(tensor_.desc.dtype, left, right);
    if (may_be_of_experts(tensor_.desc.name)) {
      return fail(Code::kReplicasDiffer,
                  "tensor {}: its replicas differ at {}: {} {}, {} {}; ranks hold experts of their "
                  "own under a name that is not known to be theirs, so that none may be left out",
                  tensor_.desc.name, to_string(index_in_tensor(*a_, (in_a - within) / size)),
                  texts.first, place(first_, a), texts.second, place(second_, b));
    }
    const StoredCopy* copy = copy_of_chunk(tensor_, second_);
    const bool has_number = copy != nullptr && copy->replica;
    return fail(Code::kReplicasDiffer,
                "tensor {}: its replicas differ at {}: {} {}, {} {}; find out which is "
                "right{}, or take the first with convert's --check-replicas none",
                tensor_.desc.name, to_string(index_in_tensor(*a_, (in_a - within) / size)),
                texts.first, place(first_, a), texts.second, place(second_, b),
                has_number ? ", and take tensor rank N's with --replica N" : "");
  }

  [[nodiscard]] std::string place(std::size_t chunk, const FilePlace& at) const {
    const StoredCopy* copy = copy_of_chunk(tensor_, chunk);
    const std::string file = fmt::format("{}@{}", paths_[at.file], at.offset);
    return copy == nullptr ? "in " + file : fmt::format("in {} ({})", copy->name, file);
  }

  const StoredTensor& tensor_;
  std::span<const std::string> paths_;
  ReplicaCheck check_;
  SourceFiles* files_;
  CopyLoops loops_;
  std::uint64_t run_bytes_ = 0;
  int axes_ = 0;
  std::size_t first_ = 0;
  std::size_t second_ = 0;
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
    // Overlapping: the plan's proof refuses it.
    if (!(tensor.chunks.box(found->second) == chunk.box)) continue;
    // Listed twice and stored once: nothing is repeated.
    const bool is_one_file = tensor.chunks.file(found->second) == chunk.file;
    if (is_one_file && tensor.chunks.range(found->second).offset == chunk.range.offset) continue;
    Comparison comparison(tensor, catalog.files, check, files);
    SW_TRY(comparison.compare(found->second, i, report));
  }
  return report;
}

// Tensors that are stored more than once, and what comparing that takes.
struct Repeated {
  std::vector<const StoredTensor*> tensors;
  std::vector<std::uint64_t> bytes;  // of each
  std::vector<ReplicaReport> costs;
};

Repeated repeated_tensors_of(const Catalog& catalog, ReplicaCheck check) {
  Repeated repeated;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto cost = walk_tensor(catalog, tensor, check, nullptr);
    if (!cost || cost->compared == 0) continue;
    repeated.tensors.push_back(&tensor);
    repeated.bytes.push_back(cost->bytes);
    repeated.costs.push_back(*cost);
  }
  return repeated;
}

}  // namespace

Status check_named_replicas(const Checkpoint& checkpoint, const Catalog& catalog,
                            Defects& defects) {
  return check_replica_names(catalog, tensor_ranks_of(checkpoint), defects);
}

ReplicaReport cost_of_replicas(const Catalog& catalog, ReplicaCheck check) {
  ReplicaReport report;
  for (const ReplicaReport& cost : repeated_tensors_of(catalog, check).costs) report.add(cost);
  return report;
}

Result<ReplicaReport> check_replicas(const Catalog& catalog, ReplicaCheck check, SourceFiles& files,
                                     Defects& defects, const Workers& workers) {
  const Repeated repeated = repeated_tensors_of(catalog, check);
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      const auto compared = walk_tensor(catalog, *repeated.tensors[job], check, &files);
      const Status status = compared ? Status() : Status(std::unexpected(compared.error()));
      return result_of(status, defects);
    };
  };
  const auto results =
      SW_TRY(run_jobs({"comparing replicas", repeated.bytes}, workers, make_worker));
  ReplicaReport report;
  for (std::size_t job = 0; job < results.size(); ++job) {
    Status status = SW_TRY(status_in(results[job]));
    if (status) report.add(repeated.costs[job]);
    SW_TRY(defects.report(std::move(status)));
  }
  return report;
}

}  // namespace shardwright
