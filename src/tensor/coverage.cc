// SPDX-License-Identifier: Apache-2.0
#include "tensor/coverage.h"

#include <vector>

#include "base/fail.h"
#include "tensor/chunk_index.h"

namespace shardwright {
namespace {

// Regions that no chunk covers. Cuts the first chunk that meets a region out of it and goes on with
// what remains, so each chunk is looked at once per region.
std::vector<Box> find_holes(const ChunkList& chunks, const ChunkIndex& index, const Box& whole,
                            std::size_t limit) {
  std::vector<Box> holes;
  std::vector<Box> regions{whole};
  std::vector<std::uint32_t> found;
  while (!regions.empty() && holes.size() < limit) {
    Box rest = regions.back();
    regions.pop_back();
    found.clear();
    index.find(rest, found);
    if (found.empty()) {
      holes.push_back(rest);
      continue;
    }
    const Box common = *intersect(rest, chunks.box(found.front()));
    for (int axis = 0; axis < rest.axes(); ++axis) {
      Box before = rest;
      before.shape[axis] = common.origin[axis] - rest.origin[axis];
      if (!before.is_empty()) regions.push_back(before);
      Box after = rest;
      after.origin[axis] = common.end(axis);
      after.shape[axis] = rest.end(axis) - common.end(axis);
      if (!after.is_empty()) regions.push_back(after);
      rest.origin[axis] = common.origin[axis];
      rest.shape[axis] = common.shape[axis];
    }
  }
  return holes;
}

// A later chunk that overlaps chunk `i` and is no replica of it. Replicas are marked, so that of a
// thousand alike only the first is looked at.
std::optional<std::size_t> overlapping(const ChunkList& chunks, std::size_t i, Replicas replicas,
                                       std::span<const std::uint32_t> found,
                                       std::vector<bool>& is_replica) {
  std::optional<std::size_t> first;
  const Box box = chunks.box(i);
  for (const std::uint32_t other : found) {
    if (other <= i) continue;
    if (replicas == Replicas::kAllowed && chunks.box(other) == box) {
      is_replica[other] = true;
    } else if (!first) {
      first = other;
    }
  }
  return first;
}

}  // namespace

Result<std::vector<CoverageDefect>> coverage_defects(const StoredTensor& tensor, Replicas replicas,
                                                     std::size_t limit) {
  const ChunkList& chunks = tensor.chunks;
  const std::int64_t expected = SW_TRY(element_count(tensor.desc.shape));
  std::vector<CoverageDefect> defects;
  for (std::size_t i = 0; i < chunks.size() && defects.size() < limit; ++i) {
    const Box box = chunks.box(i);
    const bool is_inside = chunks.axes() == tensor.desc.shape.size() &&
                           make_box(box.origin, box.shape, tensor.desc.shape).has_value();
    if (!is_inside) defects.push_back({Code::kOutOfBounds, box, i, i});
  }
  if (!defects.empty()) return defects;
  if (chunks.empty() && expected > 0) {
    defects.push_back({Code::kHole, Box::whole(tensor.desc.shape), 0, 0});
    return defects;
  }
  const ChunkIndex index(chunks);
  std::int64_t covered = 0;
  std::vector<std::uint32_t> found;
  std::vector<bool> is_replica(chunks.size(), false);
  for (std::size_t i = 0; i < chunks.size() && defects.size() < limit; ++i) {
    const Box box = chunks.box(i);
    if (is_replica[i] || box.is_empty()) continue;
    found.clear();
    index.find(box, found);
    const auto other = overlapping(chunks, i, replicas, found, is_replica);
    if (other) defects.push_back({Code::kOverlap, box, i, *other});
    covered += box.volume();
  }
  if (defects.empty() && covered == expected) return defects;
  for (const Box& hole :
       find_holes(chunks, index, Box::whole(tensor.desc.shape), limit - defects.size())) {
    defects.push_back({Code::kHole, hole, 0, 0});
  }
  return defects;
}

Status check_coverage(const StoredTensor& tensor, Replicas replicas) {
  const std::string& name = tensor.desc.name;
  const ChunkList& chunks = tensor.chunks;
  if (chunks.axes() != tensor.desc.shape.size()) {
    return fail(Code::kOutOfBounds, "tensor {}: chunks have {} axes, expected shape {}", name,
                chunks.axes(), to_string(tensor.desc.shape));
  }
  const std::vector<CoverageDefect> defects = SW_TRY(coverage_defects(tensor, replicas, 1));
  if (defects.empty()) return {};
  const CoverageDefect& first = defects.front();
  if (first.code == Code::kOutOfBounds) {
    const Result<Box> inside = make_box(first.box.origin, first.box.shape, tensor.desc.shape);
    return std::unexpected(Error(inside.error()).within(fmt::format("tensor {}", name)));
  }
  if (first.code == Code::kOverlap) {
    return fail(Code::kOverlap, "tensor {}: chunk {} overlaps chunk {}, expected disjoint chunks",
                name, to_string(first.box), to_string(chunks.box(first.other)));
  }
  return fail(Code::kHole, "tensor {}: no chunk holds {}, expected every element of {} once", name,
              to_string(first.box), to_string(tensor.desc.shape));
}

}  // namespace shardwright
