// SPDX-License-Identifier: Apache-2.0
#include "layout/device_mesh.h"

#include <algorithm>
#include <unordered_set>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostMeshRanks = std::int64_t{1} << 24;

Result<DeviceMesh> fill_mesh(const RunMeshSizes& run, const Dims& last_three,
                             std::string_view what) {
  const std::int64_t inner = run.pipeline * last_three[1] * last_three[2];
  if (run.world < 1 || inner < 1 || run.world % inner != 0) {
    return fail(Code::kComponentLayout,
                "{} mesh: found {} ranks, expected a multiple of {} (PP {} x {} x {})", what,
                run.world, inner, run.pipeline, last_three[1], last_three[2]);
  }
  return DeviceMesh::make({run.pipeline, run.world / inner, last_three[1], last_three[2]});
}

bool are_sizes(const RunMeshSizes& run) {
  const auto fits = [](std::int64_t size) { return size >= 1 && size <= (1 << 20); };
  return fits(run.world) && fits(run.pipeline) && fits(run.context) && fits(run.tensor) &&
         fits(run.expert) && fits(run.expert_tensor);
}

}  // namespace

Result<DeviceMesh> DeviceMesh::make(const Dims& sizes, std::vector<std::int64_t> ranks) {
  const Result<std::int64_t> count = element_count(sizes);
  const bool positive = std::ranges::all_of(sizes, [](std::int64_t size) { return size >= 1; });
  if (!count || !positive || *count > kMostMeshRanks || sizes.empty()) {
    return fail(Code::kComponentLayout, "mesh: found sizes {}, expected some of at least 1",
                to_string(sizes));
  }
  if (ranks.empty()) {
    for (std::int64_t rank = 0; rank < *count; ++rank) ranks.push_back(rank);
  }
  if (static_cast<std::int64_t>(ranks.size()) != *count) {
    return fail(Code::kComponentLayout, "mesh: found {} ranks, expected {} for sizes {}",
                ranks.size(), *count, to_string(sizes));
  }
  std::unordered_set<std::int64_t> seen;
  for (const std::int64_t rank : ranks) {
    if (rank < 0 || !seen.insert(rank).second) {
      return fail(Code::kComponentLayout, "mesh: found rank {} {}, expected each rank once", rank,
                  rank < 0 ? translated("below 0") : translated("twice"));
    }
  }
  return DeviceMesh(sizes, std::move(ranks));
}

std::optional<Dims> DeviceMesh::coordinate_of(std::int64_t rank) const {
  const auto found = std::ranges::find(ranks_, rank);
  if (found == ranks_.end()) return std::nullopt;
  std::int64_t place = found - ranks_.begin();
  Dims coordinate = Dims::filled(axes(), 0);
  for (int axis = axes() - 1; axis >= 0; --axis) {
    coordinate[axis] = place % sizes_[axis];
    place /= sizes_[axis];
  }
  return coordinate;
}

bool DeviceMesh::has_line(int axis, std::span<const std::int64_t> ranks) const {
  if (static_cast<std::int64_t>(ranks.size()) != sizes_[axis]) return false;
  const auto first = std::ranges::find(ranks_, ranks.front());
  if (first == ranks_.end()) return false;
  const std::int64_t stride = row_major_strides(sizes_)[axis];
  const std::int64_t begin = first - ranks_.begin();
  if (begin / stride % sizes_[axis] != 0) return false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks_[static_cast<std::size_t>(begin + static_cast<std::int64_t>(i) * stride)] !=
        ranks[i]) {
      return false;
    }
  }
  return true;
}

Result<DeviceMesh> dense_mesh(const RunMeshSizes& sizes) {
  if (!are_sizes(sizes)) return fail(Code::kComponentLayout, "dense mesh: found a size below 1");
  return fill_mesh(sizes, {0, sizes.context, sizes.tensor}, "dense");
}

Result<DeviceMesh> expert_mesh(const RunMeshSizes& sizes) {
  if (!are_sizes(sizes)) return fail(Code::kComponentLayout, "expert mesh: found a size below 1");
  return fill_mesh(sizes, {0, sizes.expert, sizes.expert_tensor}, "expert");
}

}  // namespace shardwright
