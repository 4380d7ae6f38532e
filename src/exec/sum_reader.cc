// SPDX-License-Identifier: Apache-2.0
#include "exec/sum_reader.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "exec/tile_reader.h"
#include "tensor/convert.h"
#include "tensor/low_halves.h"
#include "tensor/weighted_sum.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostElements =
    SumReader::kMostBytes / 2 / static_cast<std::int64_t>(sizeof(float));

TilePart dense_block(const Box& box, std::vector<std::byte>& bytes, int element_bytes) {
  bytes.resize(static_cast<std::size_t>(box.volume() * element_bytes));
  return dense_part(box, bytes.data(), element_bytes);
}

// Cut there, a region gives blocks that stay near to what files hold in one run.
int outermost_axis(const Dims& shape) {
  int axis = 0;
  while (shape[axis] == 1) ++axis;
  return axis;
}

// Calls `use` for each run of elements that lie densely in both.
template <class Use>
Status for_each_run(const Box& region, const TilePart& a, const TilePart& b, int element_bytes,
                    const Use& use) {
  const CopyLoops loops = collapse({region.shape, a.strides, b.strides});
  std::byte* const first = address_of(a, region);
  std::byte* const second = address_of(b, region);
  const int axes = loops.shape.size();
  const bool is_dense = axes > 0 && loops.target_strides[axes - 1] == element_bytes &&
                        loops.source_strides[axes - 1] == element_bytes;
  const std::int64_t run = is_dense ? loops.shape[axes - 1] : 1;
  const int outer = is_dense ? axes - 1 : axes;
  const std::int64_t runs = region.volume() / std::max<std::int64_t>(run, 1);
  for (std::int64_t i = 0; i < runs; ++i) {
    std::int64_t rest = i;
    std::int64_t in_first = 0;
    std::int64_t in_second = 0;
    for (int axis = outer - 1; axis >= 0; --axis) {
      const std::int64_t at = rest % loops.shape[axis];
      rest /= loops.shape[axis];
      in_first += at * loops.target_strides[axis];
      in_second += at * loops.source_strides[axis];
    }
    SW_TRY(use(run, first + in_first, second + in_second));
  }
  return {};
}

}  // namespace

bool SumReader::is_sum(std::size_t tensor) const {
  if (plan_->weighted.empty()) return false;
  const ViewList& views = plan_->tensors[tensor].views;
  return !views.empty() && lowering_->weighted(views[0].source) != nullptr;
}

Status SumReader::read(std::size_t tensor, const Box& tile, std::span<const TilePart> parts,
                       Gather& gather) {
  if (tile.is_empty()) return {};
  if (tile.volume() <= kMostElements) return read_block(tensor, tile, parts, gather);
  const int axis = outermost_axis(tile.shape);
  const std::int64_t inner = tile.volume() / tile.shape[axis];
  const std::int64_t step = std::max<std::int64_t>(kMostElements / inner, 1);
  for (std::int64_t done = 0; done < tile.shape[axis]; done += step) {
    Box block = tile;
    block.origin[axis] += done;
    block.shape[axis] = std::min(step, tile.shape[axis] - done);
    SW_TRY(read(tensor, block, parts, gather));
  }
  return {};
}

Status SumReader::read_block(std::size_t tensor, const Box& block, std::span<const TilePart> parts,
                             Gather& gather) {
  const DType dtype = plan_->target.tensors[tensor].desc.dtype;
  const bool is_float = is_castable_float(dtype);
  const DType held = is_float ? DType::kF32 : dtype;
  pieces_.clear();
  lowering_->lower(tensor, block, pieces_);
  std::ranges::stable_sort(pieces_, {},
                           [](const SourcePiece& piece) { return piece.weighted->term; });
  const TilePart sums = dense_block(block, sums_, bytes_of(held));
  const double fill = plan_->tensors[tensor].fill.value_or(0.0);
  if (is_float) {
    const auto value = static_cast<float>(fill);
    for (std::size_t at = 0; at < sums_.size(); at += sizeof value) {
      std::memcpy(sums_.data() + at, &value, sizeof value);
    }
  } else {
    std::ranges::fill(sums_, std::byte{0});
  }
  for (const SourcePiece& piece : pieces_) {
    const bool is_first = piece.weighted->term == pieces_.front().weighted->term;
    if (piece.weighted->is_low_half) {
      SW_TRY(join(piece, sums, gather));
      continue;
    }
    SW_TRY(is_float ? add(piece, sums, is_first, gather)
                    : compare(piece, pieces_.front(), sums, is_first, gather));
  }
  for (const TilePart& part : parts) {
    const std::optional<Box> common = intersect(part.box, block);
    if (!common) continue;
    const CopyLoops loops{common->shape, part.strides, sums.strides};
    SW_TRY(convert_region({held, dtype, 0.0}, loops, address_of(sums, *common),
                          address_of(part, *common)));
  }
  return {};
}

Status SumReader::add(const SourcePiece& piece, const TilePart& sums, bool is_first,
                      Gather& gather) {
  const TilePart values = dense_block(piece.box, values_, sizeof(float));
  SW_TRY(
      gather.read(piece, {piece.dtype, DType::kF32, piece.weighted->add}, std::span(&values, 1)));
  const float weight = piece.weighted->weight;
  return for_each_run(piece.box, sums, values, sizeof(float),
                      [&](std::int64_t count, std::byte* sum, const std::byte* value) -> Status {
                        const auto* from = reinterpret_cast<const float*>(value);
                        auto* to = reinterpret_cast<float*>(sum);
                        if ((is_first ? begin_sum : add_to_sum)(count, weight, from, to) == count) {
                          return {};
                        }
                        return fail(Code::kValueOverflow,
                                    "{}: its numbers are finite, but their weighted sum with those "
                                    "of the other models is too large for float32; see that all "
                                    "are of one model, and choose other weights",
                                    plan_->source.files[piece.file]);
                      });
}

Status SumReader::join(const SourcePiece& piece, const TilePart& sums, Gather& gather) {
  const TilePart low = dense_block(piece.box, values_, bytes_of(piece.dtype));
  SW_TRY(gather.read(piece, {piece.dtype, piece.dtype, 0.0}, std::span(&low, 1)));
  // Runs are found in elements of one width: halves become floats first.
  if (piece.dtype == DType::kI16) widen_values(static_cast<std::size_t>(piece.box.volume()));
  const TilePart values = dense_part(piece.box, values_.data(), sizeof(float));
  return for_each_run(
      piece.box, sums, values, sizeof(float),
      [&](std::int64_t count, std::byte* number, const std::byte* value) -> Status {
        const auto* halves = reinterpret_cast<const float*>(value);
        if (join_low_halves(count, halves, reinterpret_cast<float*>(number)) == count) return {};
        return fail(Code::kOptimizerMismatch,
                    "{}: found a master weight that is no remainder among others that are; convert "
                    "without the optimizer (--optimizer drop)",
                    plan_->source.files[piece.file]);
      });
}

// From the last on, so that none is written over before it is read.
void SumReader::widen_values(std::size_t count) {
  values_.resize(count * sizeof(float));
  for (std::size_t i = count; i-- > 0;) {
    std::int16_t half = 0;
    std::memcpy(&half, values_.data() + i * sizeof half, sizeof half);
    const auto number = static_cast<float>(half);
    std::memcpy(values_.data() + i * sizeof number, &number, sizeof number);
  }
}

Status SumReader::compare(const SourcePiece& piece, const SourcePiece& first,
                          const TilePart& values, bool is_first, Gather& gather) {
  const int element = bytes_of(piece.dtype);
  const TilePart own = dense_block(piece.box, values_, element);
  SW_TRY(gather.read(piece, {piece.dtype, piece.dtype, 0.0}, std::span(&own, 1)));
  return for_each_run(
      piece.box, values, own, element,
      [&](std::int64_t count, std::byte* kept, const std::byte* value) -> Status {
        const auto bytes = static_cast<std::size_t>(count * element);
        if (is_first) {
          std::memcpy(kept, value, bytes);
        } else if (std::memcmp(kept, value, bytes) != 0) {
          return fail(Code::kDtypeUnsupported,
                      "{} values differ in {} and {}; only floating point values are averaged, all "
                      "others must be alike",
                      torch_name(piece.dtype), plan_->source.files[first.file],
                      plan_->source.files[piece.file]);
        }
        return {};
      });
}

}  // namespace shardwright
