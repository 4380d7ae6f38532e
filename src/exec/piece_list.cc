// SPDX-License-Identifier: Apache-2.0
#include "exec/piece_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "exec/tile_grid.h"
#include "plan/repeated_tensors.h"
#include "plan/source_place.h"

namespace shardwright {
namespace {

TileGrid grid_of(const Plan& plan, std::size_t tensor, std::int64_t most_bytes) {
  const TensorDesc& desc = plan.target.tensors[tensor].desc;
  return {desc.shape, bytes_of(desc.dtype), most_bytes, &plan.tensors[tensor]};
}

}  // namespace

bool PieceRun::is_before(const PieceRun& other) const {
  const auto key = [](const PieceRun& run) {
    return std::tuple(run.is_object(), run.index, run.chunk, run.offset);
  };
  return key(*this) < key(other);
}

ByteRange run_in_chunk(const Box& chunk, const Box& region, int element_bytes) {
  const Box box = *intersect(region, chunk);
  const Dims strides = row_major_strides(chunk.shape);
  std::int64_t first = 0;
  for (int axis = 0; axis < chunk.axes(); ++axis) {
    first += (box.origin[axis] - chunk.origin[axis]) * strides[axis];
  }
  return {static_cast<std::uint64_t>(first * element_bytes),
          static_cast<std::uint64_t>(box.volume() * element_bytes)};
}

std::uint64_t default_piece_bytes(std::uint64_t total_bytes) {
  constexpr std::uint64_t kPieces = 64;
  constexpr std::uint64_t kLeast = std::uint64_t{16} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
  return std::clamp(total_bytes / kPieces, kLeast, kMost);
}

PieceList::PieceList(const Plan& plan, std::uint64_t most_bytes)
    : plan_(&plan),
      most_bytes_(static_cast<std::int64_t>(
          std::clamp<std::uint64_t>(most_bytes, 1, std::uint64_t{1} << 62))),
      is_repeated_(repeated_tensors(plan)) {
  const std::vector<StoredTensor>& tensors = plan.target.tensors;
  chunk_indexes_.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) chunk_indexes_.emplace_back(tensor.chunks);

  std::vector<std::pair<SourcePlace, std::uint32_t>> order;
  order.reserve(tensors.size());
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (!is_repeated_[i]) order.emplace_back(first_place(plan, i), i);
  }
  std::ranges::sort(order);
  for (const auto& [place, tensor] : order) add_units(tensor);
  for (std::uint32_t i = 0; i < plan.objects.size(); ++i) {
    if (plan.objects[i].is_copy) units_.push_back({i, WorkUnit::kObject});
  }

  for (std::size_t i = 0; i < units_.size(); ++i) {
    const std::uint64_t bytes = unit_bytes(units_[i]);
    total_bytes_ += bytes;
    if (!bytes_.empty() && bytes_.back() + bytes <= most_bytes) {
      ends_.back() = i + 1;
      bytes_.back() += bytes;
    } else {
      ends_.push_back(i + 1);
      bytes_.push_back(bytes);
    }
  }
}

void PieceList::add_units(std::uint32_t tensor) {
  const std::int64_t count = grid_of(*plan_, tensor, most_bytes_).count();
  for (std::int64_t ordinal = 0; ordinal < count; ++ordinal) {
    units_.push_back({tensor, ordinal});
  }
}

std::uint64_t PieceList::unit_bytes(const WorkUnit& unit) const {
  if (unit.is_object()) return plan_->target.objects[unit.index].range.length;
  const StoredTensor& target = plan_->target.tensors[unit.index];
  const Box region = box(unit);
  std::vector<std::uint32_t> chunks;
  find_chunks(unit.index, region, chunks);
  std::uint64_t bytes = 0;  // of archives' tensors several chunks may have the same
  for (const std::uint32_t chunk : chunks) {
    bytes += run_in_chunk(target.chunks.box(chunk), region, bytes_of(target.desc.dtype)).length;
  }
  std::uint64_t copies = 1;
  while (is_repeated(unit.index + copies)) ++copies;
  return bytes * copies;
}

std::uint32_t PieceList::source_file(std::uint32_t piece) const {
  const WorkUnit& unit = units(piece).front();
  if (!unit.is_object()) return first_place(*plan_, unit.index).first;
  return plan_->source.objects[plan_->objects[unit.index].source].file;
}

std::span<const WorkUnit> PieceList::units(std::uint32_t piece) const {
  const std::size_t begin = piece == 0 ? 0 : ends_[piece - 1];
  return std::span(units_).subspan(begin, ends_[piece] - begin);
}

Box PieceList::box(const WorkUnit& unit) const {
  return grid_of(*plan_, unit.index, most_bytes_).tile(unit.ordinal);
}

std::vector<PieceRun> PieceList::runs(std::uint32_t piece) const {
  std::vector<PieceRun> runs;
  std::vector<std::uint32_t> chunks;
  for (const WorkUnit& unit : units(piece)) {
    if (unit.is_object()) {
      const std::uint64_t length = plan_->target.objects[unit.index].range.length;
      if (length > 0) runs.push_back({unit.index, PieceRun::kObject, 0, length});
      continue;
    }
    const Box region = box(unit);
    std::uint32_t tensor = unit.index;
    do {
      const StoredTensor& target = plan_->target.tensors[tensor];
      chunks.clear();
      find_chunks(tensor, region, chunks);
      for (const std::uint32_t chunk : chunks) {
        const ByteRange run =
            run_in_chunk(target.chunks.box(chunk), region, bytes_of(target.desc.dtype));
        runs.push_back({tensor, chunk, run.offset, run.length});
      }
    } while (is_repeated(++tensor));
  }
  std::ranges::sort(runs, [](const PieceRun& a, const PieceRun& b) { return a.is_before(b); });
  return runs;
}

}  // namespace shardwright
