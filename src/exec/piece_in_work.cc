// SPDX-License-Identifier: Apache-2.0
#include "exec/piece_in_work.h"

#include <algorithm>
#include <iterator>

#include "base/crc32.h"
#include "exec/tile_grid.h"

namespace shardwright {

PieceInWork::PieceInWork(const Plan& plan, const PieceList& pieces, std::uint32_t piece,
                         const TileBytes& tile_bytes)
    : piece_(piece) {
  for (const WorkUnit& unit : pieces.units(piece)) {
    if (unit.is_object()) {
      jobs_.push_back({unit, {}});
      continue;
    }
    const Box region = pieces.box(unit);
    const TileGrid grid(region.shape, bytes_of(plan.target.tensors[unit.index].desc.dtype),
                        tile_bytes[unit.index], &plan.tensors[unit.index]);
    for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
      Box tile = grid.tile(ordinal);
      for (int axis = 0; axis < tile.axes(); ++axis) tile.origin[axis] += region.origin[axis];
      jobs_.push_back({unit, tile});
    }
  }
  missing_ = jobs_.size();
}

const TileJob* PieceInWork::take() {
  const std::size_t next = next_++;
  return next < jobs_.size() ? &jobs_[next] : nullptr;
}

bool PieceInWork::add(std::vector<WrittenRun> runs) {
  const std::scoped_lock lock(mutex_);
  std::ranges::move(runs, std::back_inserter(written_));
  return --missing_ == 0;
}

std::vector<WrittenRun> PieceInWork::joined(const std::vector<PieceRun>& runs) {
  std::ranges::sort(
      written_, [](const WrittenRun& a, const WrittenRun& b) { return a.run.is_before(b.run); });
  std::vector<WrittenRun> joined;
  joined.reserve(runs.size());
  auto part = written_.begin();
  for (const PieceRun& run : runs) {
    WrittenRun whole{run, 0, false};
    for (std::uint64_t done = 0; done < run.length; ++part) {
      whole.crc = done == 0 ? part->crc : crc32_combine(whole.crc, part->crc, part->run.length);
      whole.is_framed = part->is_framed;
      done += part->run.length;
    }
    joined.push_back(whole);
  }
  return joined;
}

}  // namespace shardwright
