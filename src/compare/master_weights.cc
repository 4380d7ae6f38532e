// SPDX-License-Identifier: Apache-2.0
#include "compare/master_weights.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "compare/tensor_values.h"
#include "layout/state_name.h"
#include "plan/canonical.h"
#include "tensor/convert.h"

namespace shardwright {
namespace {

struct Pair {
  const StoredTensor* weight = nullptr;
  const StoredTensor* master = nullptr;
};

// The weight as it is, and the master weight as one.
Plan plan_of(const Pair& pair) {
  Plan plan;
  for (const StoredTensor* tensor : {pair.weight, pair.master}) {
    const auto number = static_cast<std::uint32_t>(plan.source.tensors.size());
    plan.source.tensors.push_back(*tensor);
    plan.target.tensors.push_back({pair.weight->desc, ChunkList(), Encoding::kRaw});
    plan.tensors.push_back({{view_of_canonical({tensor->desc, number, -1})}, std::nullopt, 0.0});
  }
  return plan;
}

std::string element_text(const Box& tile, std::size_t element) {
  auto rest = static_cast<std::int64_t>(element);
  Dims at = tile.origin;
  for (int axis = tile.axes() - 1; axis >= 0; --axis) {
    at[axis] += rest % tile.shape[axis];
    rest /= tile.shape[axis];
  }
  return to_string(at);
}

// What of a pair is looked at.
enum class Extent : std::uint8_t { kAll, kBegin };

// The first rows of the first tile: a few thousand elements.
Box begin_of(Box tile) {
  constexpr std::int64_t kMostElements = 4096;
  std::int64_t inside = 1;  // elements of an index of the axis
  for (int axis = tile.axes() - 1; axis >= 0; --axis) {
    tile.shape[axis] =
        std::min(tile.shape[axis], std::max<std::int64_t>(kMostElements / inside, 1));
    inside *= tile.shape[axis];
  }
  return tile;
}

std::unexpected<Error> refuse_type(const Pair& pair) {
  return fail(Code::kOptimizerMismatch,
              "tensor {}: found a weight of {} and a master weight of {}, which cannot be rounded "
              "to it; they are of two saves, or the weight was changed afterwards",
              pair.weight->desc.name, torch_name(pair.weight->desc.dtype),
              torch_name(pair.master->desc.dtype));
}

// Nobody trains integers. Of float8, whose scales may be elsewhere, that is told when it is
// compared.
Status check_types(const std::vector<Pair>& pairs) {
  for (const Pair& pair : pairs) {
    if (is_integer(pair.weight->desc.dtype)) return refuse_type(pair);
  }
  return {};
}

Status check_pair(SourceFiles& files, const Pair& pair, Extent extent = Extent::kAll) {
  const TensorDesc& weight = pair.weight->desc;
  if (!(pair.master->desc.shape == weight.shape)) {
    return fail(Code::kOptimizerMismatch, "tensor {}: found a master weight {}, expected {}",
                weight.name, to_string(pair.master->desc.shape), to_string(weight.shape));
  }
  if (!is_supported({pair.master->desc.dtype, weight.dtype, 0.0})) return refuse_type(pair);
  const Plan plan = plan_of(pair);
  TensorValues values(plan, files);
  const TileGrid grid = values.grid(0);
  const auto width = static_cast<std::size_t>(bytes_of(weight.dtype));
  const bool is_whole = extent == Extent::kAll;
  const std::int64_t count = is_whole ? grid.count() : std::min<std::int64_t>(grid.count(), 1);
  for (std::int64_t ordinal = 0; ordinal < count; ++ordinal) {
    const Box tile = is_whole ? grid.tile(ordinal) : begin_of(grid.tile(ordinal));
    const std::span<const std::byte> expected = SW_TRY(values.read(0, tile, 0));
    const std::span<const std::byte> rounded = SW_TRY(values.read(1, tile, 1));
    if (std::memcmp(expected.data(), rounded.data(), expected.size()) == 0) continue;
    const auto [found, other] =
        std::mismatch(expected.begin(), expected.end(), rounded.begin(), rounded.end());
    const auto byte = static_cast<std::size_t>(found - expected.begin());
    return fail(Code::kOptimizerMismatch,
                "tensor {}: found a master weight that, rounded to {}, is not the weight at {}; "
                "its optimizer state belongs to another parameter or another step: convert "
                "without it (--optimizer drop)",
                weight.name, torch_name(weight.dtype), element_text(tile, byte / width));
  }
  return {};
}

// A float32 weight may be its own master weight: then nothing proves the other states.
bool is_same(const Pair& pair) {
  const ChunkList& weight = pair.weight->chunks;
  const ChunkList& master = pair.master->chunks;
  if (pair.weight->desc.dtype != pair.master->desc.dtype || weight.size() != master.size()) {
    return false;
  }
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const Chunk a = weight[i];
    const Chunk b = master[i];
    if (a.file != b.file || a.range.offset != b.range.offset || !(a.box == b.box)) return false;
  }
  return true;
}

Result<std::vector<Pair>> pairs_of(const Catalog& catalog) {
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) by_name.emplace(tensor.desc.name, &tensor);
  std::vector<Pair> pairs;
  for (const StoredTensor& master : catalog.tensors) {
    const auto name = weight_of_master(master.desc.name);
    if (!name) continue;
    const auto weight = by_name.find(*name);
    if (weight == by_name.end()) {
      return fail(
          Code::kUsage,
          "tensor {}: this weight is left out but its optimizer state is kept, and the state "
          "is proven by the weight; keep or drop both",
          *name);
    }
    pairs.push_back({weight->second, &master});
    if (is_same(pairs.back())) pairs.pop_back();
  }
  return pairs;
}

Result<std::uint64_t> size_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(SW_TRY(byte_count(tensor.desc.shape, tensor.desc.dtype)));
}

}  // namespace

std::optional<std::string_view> weight_of_master(std::string_view name) {
  const auto state = split_state_name(name);
  if (!state || state->kind != kStateKinds.front()) return std::nullopt;
  return state->tensor;
}

bool has_master_weights(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return weight_of_master(tensor.desc.name).has_value();
  });
}

Result<MasterWeightCheck> plan_master_weights(const Catalog& catalog) {
  MasterWeightCheck check;
  std::unordered_set<std::string_view> told;  // of which it is known whether they are proven
  const std::vector<Pair> pairs = SW_TRY(pairs_of(catalog));
  SW_TRY(check_types(pairs));
  for (const Pair& pair : pairs) {
    told.insert(pair.weight->desc.name);
    for (const StoredTensor* tensor : {pair.weight, pair.master}) {
      check.bytes += SW_TRY(size_of(*tensor));
    }
  }
  std::unordered_set<std::string_view> unproven;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto state = split_state_name(tensor.desc.name);
    if (!state || !told.insert(state->tensor).second) continue;
    check.unproven.emplace_back(state->tensor);
    unproven.insert(state->tensor);
  }
  for (const StoredTensor& tensor : catalog.tensors) {
    if (unproven.contains(tensor.desc.name)) check.unproven_types.insert(tensor.desc.dtype);
  }
  return check;
}

Result<SampledMasters> sample_master_weights(const Catalog& catalog, SourceFiles& files) {
  constexpr std::size_t kMostPairs = 256;
  const std::vector<Pair> pairs = SW_TRY(pairs_of(catalog));
  SW_TRY(check_types(pairs));
  SampledMasters sampled;
  sampled.looked_at = std::min(pairs.size(), kMostPairs);
  for (std::size_t i = 0; i < sampled.looked_at; ++i) {
    const Pair& pair = pairs[i * pairs.size() / sampled.looked_at];
    const Status status = check_pair(files, pair, Extent::kBegin);
    if (status) continue;
    if (status.error().code != Code::kOptimizerMismatch) return std::unexpected(status.error());
    sampled.strange.push_back(pair.weight->desc.name);
  }
  return sampled;
}

Status check_master_weights(const Catalog& catalog, SourceFiles& files, Defects& defects,
                            const Workers& workers) {
  const std::vector<Pair> pairs = SW_TRY(pairs_of(catalog));
  std::vector<std::uint64_t> bytes;
  for (const Pair& pair : pairs) {
    const std::uint64_t weight = SW_TRY(size_of(*pair.weight));
    bytes.push_back(weight + SW_TRY(size_of(*pair.master)));
  }
  const auto make_worker = [&]() -> JobWorker {
    return [&](std::size_t job) -> Result<JobResult> {
      return result_of(check_pair(files, pairs[job]), defects);
    };
  };
  const auto results = SW_TRY(run_jobs({"comparing master weights", bytes}, workers, make_worker));
  for (const std::string& result : results) {
    Status status = SW_TRY(status_in(result));
    SW_TRY(defects.report(std::move(status)));
  }
  return {};
}

}  // namespace shardwright
