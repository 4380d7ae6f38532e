// SPDX-License-Identifier: Apache-2.0
#include "model/transform.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "model/grouped_transform.h"
#include "model/piece_shape.h"

namespace shardwright {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};

/// The sum of the extents of tensors that agree on every other axis.
Result<Dims> joined(std::span<const Dims> parts, int axis) {
  SW_TRY(check_axis(parts[0], axis));
  std::int64_t total = 0;
  for (const Dims& part : parts) {
    if (part.size() != parts[0].size() ||
        with_extent(part, axis, 0) != with_extent(parts[0], axis, 0)) {
      return mismatch(fmt::format("shape {}", to_string(part)),
                      translated("{} but for axis {}", to_string(parts[0]), axis));
    }
    const auto sum = checked_add(total, part[axis]);
    if (!sum) return fail(Code::kLimit, "axis {}: found an extent beyond 64 bits", axis);
    total = *sum;
  }
  return with_extent(parts[0], axis, total);
}

/// The shapes of `count` parts of `whole`, by the extents given or else equal. Where the last one
/// has none, it is what is left.
Result<std::vector<Dims>> divided(const Dims& whole, int axis, std::span<const SizeExpr> extents,
                                  int count, const Scope& scope) {
  SW_TRY(check_axis(whole, axis));
  std::vector<Dims> parts;
  std::int64_t left = whole[axis];
  for (int i = 0; i < count; ++i) {
    std::int64_t extent = whole[axis] / count;
    const auto number = static_cast<std::size_t>(i);
    if (number < extents.size()) {
      extent = SW_TRY(extents[number].evaluate(scope));
    } else if (!extents.empty()) {
      extent = std::max<std::int64_t>(left, 1);  // something must be left
    }
    parts.push_back(with_extent(whole, axis, extent));
    if (extent > left) left = -1;
    if (left < 0) break;
    left -= extent;
  }
  if (left != 0) {
    return mismatch(fmt::format("shape {}", to_string(whole)),
                    translated("axis {} to hold its {} parts exactly", axis, count));
  }
  return parts;
}

/// Pieces of tensors that lie one after another in a whole one; `split` says which side is whole.
std::vector<Piece> consecutive(std::span<const Dims> parts, int axis, bool split) {
  std::vector<Piece> pieces;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Piece piece = whole_piece(parts[i]);
    (split ? piece.megatron : piece.hf) = static_cast<int>(i);
    (split ? piece.hf_origin : piece.megatron_origin)[axis] = at;
    at += parts[i][axis];
    pieces.push_back(piece);
  }
  return pieces;
}

Result<Lowered> lower_repeat(const Dims& shape, std::span<const Dims> megatron, int count) {
  for (const Dims& each : megatron) {
    if (each != shape) {
      return mismatch(fmt::format("shape {}", to_string(each)),
                      translated("{} like the first", to_string(shape)));
    }
  }
  Lowered lowered{{shape}, {}, {}};
  for (int i = 0; i < count; ++i) {
    lowered.megatron.push_back(shape);
    Piece piece = whole_piece(shape);
    piece.megatron = i;
    piece.repeats = i > 0;
    lowered.pieces.push_back(piece);
  }
  return lowered;
}

Result<Lowered> lower_interleaved(const Interleaved& transform, const Dims& shape) {
  SW_TRY(check_axis(shape, transform.axis));
  if (shape[transform.axis] % transform.ways != 0) {
    return mismatch(fmt::format("shape {}", to_string(shape)),
                    translated("axis {} to be a multiple of {}", transform.axis, transform.ways));
  }
  Lowered lowered{{shape}, {shape}, {}};
  const std::int64_t extent = shape[transform.axis] / transform.ways;
  for (int way = 0; way < transform.ways; ++way) {
    Piece piece = whole_piece(with_extent(shape, transform.axis, extent));
    piece.hf_origin[transform.axis] = way;
    piece.hf_step[transform.axis] = transform.ways;
    piece.megatron_origin[transform.axis] = way * extent;
    lowered.pieces.push_back(piece);
  }
  return lowered;
}

Result<Lowered> lower_swapped(const Swapped& transform, const Dims& shape) {
  SW_TRY(check_axis(shape, transform.axis));
  if (shape[transform.axis] % 2 != 0) {
    return mismatch(fmt::format("shape {}", to_string(shape)),
                    translated("an even extent of axis {}", transform.axis));
  }
  Lowered lowered{{shape}, {shape}, {}};
  const std::int64_t half = shape[transform.axis] / 2;
  for (const std::int64_t start : {std::int64_t{0}, half}) {
    Piece piece = whole_piece(with_extent(shape, transform.axis, half));
    piece.megatron_origin[transform.axis] = start;
    piece.hf_origin[transform.axis] = half - start;
    lowered.pieces.push_back(piece);
  }
  return lowered;
}

Dims without_axis(const Dims& dims, int axis) {
  Dims rest;
  for (int i = 0; i < dims.size(); ++i) {
    if (i != axis) rest.push_back(dims[i]);
  }
  return rest;
}

Result<Lowered> lower_unstack(int axis, std::span<const Dims> hf, std::vector<Dims> megatron,
                              int count) {
  Dims whole;
  if (hf.empty()) {
    const Dims& part = megatron[0];
    if (axis > part.size() || part.size() + 1 > kMaxAxes) {
      return mismatch(fmt::format("shape {}", to_string(part)),
                      translated("{} to {} axes", axis, kMaxAxes - 1));
    }
    for (int i = 0; i <= part.size(); ++i) {
      whole.push_back(i == axis ? count : part[i < axis ? i : i - 1]);
    }
  } else {
    whole = hf[0];
    SW_TRY(check_axis(whole, axis));
    if (whole[axis] != count) {
      return mismatch(fmt::format("shape {}", to_string(whole)),
                      translated("an extent of {} at axis {}", count, axis));
    }
  }
  const Dims part = without_axis(whole, axis);
  if (megatron.empty()) megatron.assign(static_cast<std::size_t>(count), part);
  Lowered lowered{{whole}, std::move(megatron), {}};
  for (int i = 0; i < count; ++i) {
    const Dims& shape = lowered.megatron[static_cast<std::size_t>(i)];
    if (shape != part) {
      return mismatch(fmt::format("shape {}", to_string(shape)), to_string(part));
    }
    Piece piece = whole_piece(shape);
    piece.megatron = i;
    piece.hf_origin = Dims::filled(whole.size(), 0);
    piece.hf_origin[axis] = i;
    for (int a = 0; a < shape.size(); ++a) piece.hf_axis.push_back(a < axis ? a : a + 1);
    lowered.pieces.push_back(piece);
  }
  return lowered;
}

/// The shape of the side that lacks the axes.
Result<Dims> without_units(const UnitAxis& unit, const Dims& outer) {
  SW_TRY(check_axis(outer, unit.axis + unit.count - 1));
  Dims inner;
  for (int axis = 0; axis < outer.size(); ++axis) {
    if (!unit.covers(axis)) {
      inner.push_back(outer[axis]);
    } else if (outer[axis] != 1) {
      return mismatch(fmt::format("shape {}", to_string(outer)),
                      translated("an extent of 1 at axis {}", axis));
    }
  }
  return inner;
}

/// The shape of the side that has them.
Result<Dims> with_units(const UnitAxis& unit, const Dims& inner) {
  if (unit.axis > inner.size() || inner.size() + unit.count > kMaxAxes) {
    return mismatch(fmt::format("shape {}", to_string(inner)),
                    translated("{} to {} axes", unit.axis, kMaxAxes - unit.count));
  }
  Dims outer;
  for (int axis = 0; axis < inner.size() + unit.count; ++axis) {
    outer.push_back(unit.covers(axis) ? 1 : inner[axis < unit.axis ? axis : axis - unit.count]);
  }
  return outer;
}

Result<Lowered> lower_unit_axis(const UnitAxis& unit, std::span<const Dims> hf,
                                std::span<const Dims> megatron) {
  const bool from_hf = megatron.empty();
  const Dims& known = from_hf ? hf[0] : megatron[0];
  const bool known_has_them = from_hf != unit.in_megatron;
  const Dims other = SW_TRY(known_has_them ? without_units(unit, known) : with_units(unit, known));
  Lowered lowered{{from_hf ? known : other}, {from_hf ? other : known}, {}};
  const int hf_axes = lowered.hf[0].size();
  Piece piece = whole_piece(lowered.megatron[0]);
  piece.hf_origin = Dims::filled(hf_axes, 0);
  for (int axis = 0, at = 0; axis < piece.shape.size(); ++axis) {
    if (unit.in_megatron && unit.covers(axis)) {
      piece.hf_axis.push_back(-1);
      continue;
    }
    if (!unit.in_megatron && at == unit.axis) at += unit.count;
    piece.hf_axis.push_back(at++);
  }
  lowered.pieces.push_back(piece);
  return lowered;
}

/// Fills in whichever side is empty. Both sides share axis numbers here.
Result<Lowered> lower(const Arrangement& arrangement, std::vector<Dims> hf,
                      std::vector<Dims> megatron, const Scope& scope) {
  const auto cases = Overload{
      [&](const Rename&) -> Result<Lowered> {
        const Dims& shape = hf.empty() ? megatron[0] : hf[0];
        return Lowered{{shape}, {shape}, {whole_piece(shape)}};
      },
      [&](const Concat& concat) -> Result<Lowered> {
        Dims whole = megatron.empty() ? SW_TRY(joined(hf, concat.axis)) : megatron[0];
        if (hf.empty() || !concat.extents.empty()) {
          std::vector<Dims> parts =
              SW_TRY(divided(whole, concat.axis, concat.extents, arrangement.hf_count, scope));
          if (!hf.empty() && hf != parts) {
            return mismatch(fmt::format("shape {}", to_string(hf[0])),
                            fmt::format("{}", to_string(parts[0])));
          }
          hf = std::move(parts);
        }
        return Lowered{hf, {whole}, consecutive(hf, concat.axis, false)};
      },
      [&](const Split& split) -> Result<Lowered> {
        Dims whole = hf.empty() ? SW_TRY(joined(megatron, split.axis)) : hf[0];
        std::vector<Dims> parts =
            SW_TRY(divided(whole, split.axis, split.extents, arrangement.megatron_count, scope));
        if (!megatron.empty() && megatron != parts) {
          return mismatch(fmt::format("shape {}", to_string(megatron[0])),
                          fmt::format("{}", to_string(parts[0])));
        }
        std::vector<Piece> pieces = consecutive(parts, split.axis, true);
        return Lowered{{whole}, std::move(parts), std::move(pieces)};
      },
      [&](const Repeat&) -> Result<Lowered> {
        return lower_repeat(hf.empty() ? megatron[0] : hf[0], megatron, arrangement.megatron_count);
      },
      [&](const Unstack& unstack) -> Result<Lowered> {
        return lower_unstack(unstack.axis, hf, std::move(megatron), arrangement.megatron_count);
      },
      [&](const Grouped& grouped) -> Result<Lowered> {
        return grouped.dealt ? lower_dealt(grouped, std::move(hf), std::move(megatron), scope)
                             : lower_grouped(grouped, std::move(hf), std::move(megatron), scope);
      },
      [&](const Interleaved& interleaved) -> Result<Lowered> {
        return lower_interleaved(interleaved, hf.empty() ? megatron[0] : hf[0]);
      },
      [&](const Swapped& swapped) -> Result<Lowered> {
        return lower_swapped(swapped, hf.empty() ? megatron[0] : hf[0]);
      },
      [&](const UnitAxis& unit) -> Result<Lowered> { return lower_unit_axis(unit, hf, megatron); },
      [&](const Constant&) -> Result<Lowered> {
        return fail(Code::kInternal, "constant: has no pieces to lower");
      },
  };
  return std::visit(cases, arrangement.transform);
}

Result<Dims> permuted(const Dims& dims, const Dims& permute, bool to_hf) {
  if (permute.empty()) return dims;
  if (permute.size() != dims.size()) {
    return mismatch(fmt::format("shape {}", to_string(dims)),
                    fmt::format("{} axes", permute.size()));
  }
  Dims result = dims;
  for (int axis = 0; axis < dims.size(); ++axis) {
    const int hf_axis = static_cast<int>(permute[axis]);
    if (to_hf) {
      result[hf_axis] = dims[axis];
    } else {
      result[axis] = dims[hf_axis];
    }
  }
  return result;
}

/// Rewrites the HF side in its own order of axes.
Result<Lowered> unpermuted(Lowered lowered, const Dims& permute) {
  for (Dims& shape : lowered.hf) shape = SW_TRY(permuted(shape, permute, true));
  for (Piece& piece : lowered.pieces) {
    if (!piece.hf_axis.empty()) continue;  // a unit axis: the sides count their axes differently
    piece.hf_origin = SW_TRY(permuted(piece.hf_origin, permute, true));
    piece.hf_axis = permute;
    for (int axis = 0; permute.empty() && axis < piece.shape.size(); ++axis) {
      piece.hf_axis.push_back(axis);
    }
  }
  return lowered;
}

}  // namespace

Result<Lowered> lower_from_hf(const Arrangement& arrangement, std::span<const Dims> hf,
                              const Scope& scope) {
  std::vector<Dims> views;
  for (const Dims& shape : hf) views.push_back(SW_TRY(permuted(shape, arrangement.permute, false)));
  return unpermuted(SW_TRY(lower(arrangement, std::move(views), {}, scope)), arrangement.permute);
}

Result<Lowered> lower_from_megatron(const Arrangement& arrangement, std::span<const Dims> megatron,
                                    const Scope& scope) {
  std::vector<Dims> shapes(megatron.begin(), megatron.end());
  return unpermuted(SW_TRY(lower(arrangement, {}, std::move(shapes), scope)), arrangement.permute);
}

}  // namespace shardwright
