// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "base/fail.h"
#include "shardwright/catalog.h"
#include "tensor/chunk_index.h"

namespace shardwright {
namespace {

// Some region that no chunk covers. REQUIRES: there is one. Cuts the first chunk that meets a
// region out of it and goes on with what remains, so each chunk is looked at once per region.
Box find_hole(const ChunkList& chunks, const ChunkIndex& index, const Box& whole) {
  std::vector<Box> regions{whole};
  std::vector<std::uint32_t> found;
  while (!regions.empty()) {
    Box rest = regions.back();
    regions.pop_back();
    found.clear();
    index.find(rest, found);
    if (found.empty()) return rest;
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
  return whole;
}

}  // namespace

Status check_coverage(const StoredTensor& tensor, Replicas replicas) {
  const std::string& name = tensor.desc.name;
  const ChunkList& chunks = tensor.chunks;
  const std::int64_t expected = SW_TRY(element_count(tensor.desc.shape));
  if (chunks.axes() != tensor.desc.shape.size()) {
    return fail(Code::kOutOfBounds, "tensor {}: chunks have {} axes, expected shape {}", name,
                chunks.axes(), to_string(tensor.desc.shape));
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Box box = chunks.box(i);
    const Result<Box> inside = make_box(box.origin, box.shape, tensor.desc.shape);
    if (!inside) {
      return std::unexpected(Error(inside.error()).within(fmt::format("tensor {}", name)));
    }
  }
  const ChunkIndex index(chunks);
  std::int64_t covered = 0;
  std::vector<std::uint32_t> found;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const Box box = chunks.box(i);
    if (box.is_empty()) continue;
    found.clear();
    index.find(box, found);
    bool is_replica = false;
    for (const std::uint32_t other : found) {
      if (other == i) continue;
      if (replicas == Replicas::kForbidden || !(chunks.box(other) == box)) {
        return fail(Code::kOverlap,
                    "tensor {}: chunk {} overlaps chunk {}, expected disjoint chunks", name,
                    to_string(box), to_string(chunks.box(other)));
      }
      is_replica |= other < i;
    }
    if (!is_replica) covered += box.volume();
  }
  if (covered != expected) {
    const Box hole = find_hole(chunks, index, Box::whole(tensor.desc.shape));
    return fail(Code::kHole, "tensor {}: no chunk holds {}, expected every element of {} once",
                name, to_string(hole), to_string(tensor.desc.shape));
  }
  return {};
}

}  // namespace shardwright
