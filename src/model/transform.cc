// SPDX-License-Identifier: Apache-2.0
#include "model/transform.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"

namespace shardwright {
namespace {

// A rule of the largest known model lowers to some thousand pieces.
constexpr std::int64_t kMaxPieces = std::int64_t{1} << 20;

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};

std::unexpected<Error> mismatch(std::string found, std::string expected) {
  return fail(Code::kShapeMismatch,
              "found {}, expected {}; check that the configuration belongs to "
              "these tensors",
              found, expected);
}

/// `shape` with the extent of one axis replaced.
Dims with_extent(Dims shape, int axis, std::int64_t extent) {
  shape[axis] = extent;
  return shape;
}

Status check_axis(const Dims& shape, int axis) {
  if (axis < shape.size()) return {};
  return mismatch(fmt::format("shape {}", to_string(shape)),
                  fmt::format("at least {} axes", axis + 1));
}

Piece whole_piece(const Dims& shape) {
  Piece piece;
  piece.hf_origin = Dims::filled(shape.size(), 0);
  piece.megatron_origin = piece.hf_origin;
  piece.shape = shape;
  piece.hf_step = Dims::filled(shape.size(), 1);
  return piece;
}

/// The sum of the extents of tensors that agree on every other axis.
Result<Dims> joined(std::span<const Dims> parts, int axis) {
  SW_TRY(check_axis(parts[0], axis));
  std::int64_t total = 0;
  for (const Dims& part : parts) {
    if (part.size() != parts[0].size() ||
        with_extent(part, axis, 0) != with_extent(parts[0], axis, 0)) {
      return mismatch(fmt::format("shape {}", to_string(part)),
                      fmt::format("{} but for axis {}", to_string(parts[0]), axis));
    }
    const auto sum = checked_add(total, part[axis]);
    if (!sum) return fail(Code::kLimit, "axis {}: found an extent beyond 64 bits", axis);
    total = *sum;
  }
  return with_extent(parts[0], axis, total);
}

/// The shapes of `count` parts of `whole`, by the extents given or else equal.
Result<std::vector<Dims>> divided(const Dims& whole, int axis, std::span<const SizeExpr> extents,
                                  int count, const Scope& scope) {
  SW_TRY(check_axis(whole, axis));
  std::vector<Dims> parts;
  std::int64_t left = whole[axis];
  for (int i = 0; i < count; ++i) {
    std::int64_t extent = whole[axis] / count;
    if (!extents.empty()) {
      extent = SW_TRY(extents[static_cast<std::size_t>(i)].evaluate(scope));
    }
    parts.push_back(with_extent(whole, axis, extent));
    if (extent > left) left = -1;
    if (left < 0) break;
    left -= extent;
  }
  if (left != 0) {
    return mismatch(fmt::format("shape {}", to_string(whole)),
                    fmt::format("axis {} to hold its {} parts exactly", axis, count));
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

/// A Grouped transform with its numbers filled in.
struct GroupSizes {
  struct Part {
    int source = 0;
    std::int64_t rows = 0;
    std::int64_t repeat = 0;
    std::int64_t stride = 0;
    std::int64_t offset = 0;
    std::int64_t copies = 1;
    bool repeats = false;
    bool is_absent = false;

    [[nodiscard]] std::int64_t megatron_rows() const { return repeat * rows * copies; }
  };
  std::int64_t count = 0;
  std::int64_t group_rows = 0;  // Megatron rows of one group
  std::vector<Part> parts;
  std::vector<std::int64_t> source_rows;  // rows that one group takes from each source

  [[nodiscard]] std::int64_t packed_rows() const {
    std::int64_t sum = 0;
    for (const std::int64_t rows : source_rows) sum += rows;
    return sum * count;
  }
};

/// Numbers of a group beyond this are no model's and would only let products overflow.
constexpr std::int64_t kMaxGroupNumber = std::int64_t{1} << 28;

Result<std::int64_t> group_number(const SizeExpr& expr, std::int64_t least, const Scope& scope) {
  const std::int64_t value = SW_TRY(expr.evaluate(scope));
  if (value < least || value > kMaxGroupNumber) {
    return fail(Code::kShapeMismatch, "'{}': found {}, expected {} to {}", expr.text(), value,
                least, kMaxGroupNumber);
  }
  return value;
}

Result<GroupSizes> group_sizes(const Grouped& grouped, const Scope& scope) {
  GroupSizes sizes;
  sizes.count = SW_TRY(group_number(grouped.count, 1, scope));
  std::int64_t runs = 0;
  for (const GroupPart& part : grouped.parts) {
    GroupSizes::Part numbers{part.source, 0, 0, 0, 0, 1, part.repeats, part.is_absent};
    numbers.rows = SW_TRY(group_number(part.rows, 1, scope));
    numbers.repeat = SW_TRY(group_number(part.repeat, 1, scope));
    numbers.stride = SW_TRY(group_number(part.stride, 1, scope));
    numbers.offset = SW_TRY(group_number(part.offset, 0, scope));
    numbers.copies = SW_TRY(group_number(part.copies, 1, scope));
    if (numbers.copies > 1 && numbers.rows != 1) {
      return mismatch(fmt::format("{} rows with copies", numbers.rows), "one");
    }
    // Products of three such numbers may not fit.
    if (numbers.repeat > kMaxGroupNumber / numbers.rows / numbers.copies) {
      return fail(Code::kLimit, "'{}': found too many rows in one group, expected at most {}",
                  part.rows.text(), kMaxGroupNumber);
    }
    if (numbers.offset + numbers.rows > numbers.stride) {
      return mismatch(fmt::format("{} rows at {}", numbers.rows, numbers.offset),
                      fmt::format("them inside a stride of {}", numbers.stride));
    }
    sizes.group_rows += numbers.megatron_rows();
    runs += numbers.copies > 1 ? 2 * numbers.repeat : numbers.repeat;
    sizes.parts.push_back(numbers);
    if (part.is_absent) continue;
    const auto source = static_cast<std::size_t>(part.source);
    if (sizes.source_rows.size() <= source) sizes.source_rows.resize(source + 1, 0);
    const std::int64_t taken = numbers.repeat * numbers.stride;
    if (taken > kMaxGroupNumber) {
      return fail(Code::kLimit, "'{}': found {} rows in one group, expected at most {}",
                  part.rows.text(), taken, kMaxGroupNumber);
    }
    if (sizes.source_rows[source] != 0 && sizes.source_rows[source] != taken) {
      return mismatch(fmt::format("{} rows of one tensor in a group", taken),
                      fmt::format("{}", sizes.source_rows[source]));
    }
    sizes.source_rows[source] = taken;
  }
  if (runs > kMaxPieces / sizes.count) {
    return fail(Code::kLimit, "'{}': found {} groups of {} runs, expected at most {} runs",
                grouped.count.text(), sizes.count, runs, kMaxPieces);
  }
  return sizes;
}

Status check_rows(const Dims& shape, std::int64_t rows, std::string_view what) {
  SW_TRY(check_axis(shape, 0));
  if (shape[0] == rows) return {};
  return mismatch(fmt::format("shape {}", to_string(shape)),
                  fmt::format("{} rows in {}", rows, what));
}

/// The rows behind a single one that repeat it.
Piece further_copies(Piece piece, std::int64_t count) {
  piece.repeats = true;
  piece.megatron_origin[0] += 1;
  piece.shape[0] = count;
  piece.hf_axis.push_back(-1);
  for (int axis = 1; axis < piece.shape.size(); ++axis) piece.hf_axis.push_back(axis);
  return piece;
}

std::vector<Piece> grouped_pieces(const Grouped& grouped, const GroupSizes& sizes,
                                  const Dims& megatron) {
  std::vector<std::int64_t> section(sizes.source_rows.size(), 0);  // where a packed section starts
  for (std::size_t i = 1; grouped.packed && i < section.size(); ++i) {
    section[i] = section[i - 1] + sizes.source_rows[i - 1] * sizes.count;
  }
  std::vector<Piece> pieces;
  std::int64_t at = 0;
  for (std::int64_t group = 0; group < sizes.count; ++group) {
    for (const GroupSizes::Part& part : sizes.parts) {
      if (part.is_absent) {
        at += part.megatron_rows();
        continue;
      }
      const auto source = static_cast<std::size_t>(part.source);
      for (std::int64_t run = 0; run < part.repeat; ++run) {
        Piece piece = whole_piece(with_extent(megatron, 0, part.rows));
        piece.hf = grouped.packed ? 0 : part.source;
        piece.hf_origin[0] =
            section[source] + group * sizes.source_rows[source] + run * part.stride + part.offset;
        piece.megatron_origin[0] = at;
        piece.repeats = part.repeats;
        at += part.rows;
        pieces.push_back(piece);
        if (part.copies == 1) continue;
        pieces.push_back(further_copies(piece, part.copies - 1));
        at += part.copies - 1;
      }
    }
  }
  return pieces;
}

/// The groups of one layer's attention, where layers differ: those that its keys, or its queries,
/// keys and values together, have rows for.
Result<std::int64_t> counted_groups(const Grouped& grouped, std::span<const Dims> hf,
                                    std::span<const Dims> megatron, const Scope& scope) {
  const GroupPart& keys = grouped.parts[1];
  const std::int64_t width = SW_TRY(group_number(keys.rows, 1, scope));
  const std::int64_t heads = SW_TRY(group_number(*grouped.counted_heads, 1, scope));
  const Dims& shape = megatron.empty() ? hf[static_cast<std::size_t>(keys.source)] : megatron[0];
  SW_TRY(check_axis(shape, 0));
  const std::int64_t key_rows =
      megatron.empty() ? shape[0] : (shape[0] - std::min(shape[0], heads * width)) / 2;
  if (key_rows < width || key_rows % width != 0 || heads % (key_rows / width) != 0) {
    return mismatch(fmt::format("shape {}", to_string(shape)),
                    fmt::format("keys of a number of heads that divides {}", heads));
  }
  return key_rows / width;
}

Result<Lowered> lower_grouped(const Grouped& grouped, std::vector<Dims> hf,
                              std::vector<Dims> megatron, const Scope& given) {
  std::vector<Binding> bindings(given.bindings.begin(), given.bindings.end());
  if (grouped.counted_heads) {
    const std::int64_t groups = SW_TRY(counted_groups(grouped, hf, megatron, given));
    bindings.push_back({std::string(grouped.count.text()), groups});
  }
  const Scope scope{given.sizes, bindings};
  const GroupSizes sizes = SW_TRY(group_sizes(grouped, scope));
  const std::int64_t rows = sizes.count * sizes.group_rows;
  std::vector<std::int64_t> hf_rows;
  for (const std::int64_t taken : sizes.source_rows) hf_rows.push_back(taken * sizes.count);
  if (grouped.packed) hf_rows = {sizes.packed_rows()};
  if (megatron.empty()) {
    for (std::size_t i = 0; i < hf.size(); ++i) {
      SW_TRY(check_rows(hf[i], hf_rows[i], fmt::format("part {}", i + 1)));
      if (with_extent(hf[i], 0, 0) != with_extent(hf[0], 0, 0)) {
        return mismatch(fmt::format("shape {}", to_string(hf[i])),
                        fmt::format("{} but for axis 0", to_string(hf[0])));
      }
    }
    megatron.push_back(with_extent(hf[0], 0, rows));
  } else {
    SW_TRY(check_rows(megatron[0], rows, "its groups"));
    for (const std::int64_t count : hf_rows) hf.push_back(with_extent(megatron[0], 0, count));
  }
  Lowered lowered{std::move(hf), std::move(megatron), {}, grouped.fill};
  lowered.pieces = grouped_pieces(grouped, sizes, lowered.megatron[0]);
  return lowered;
}

/// The same with the sides exchanged: a piece reads the same in both directions.
Result<Lowered> lower_dealt(const Grouped& grouped, std::vector<Dims> hf,
                            std::vector<Dims> megatron, const Scope& scope) {
  Lowered lowered = SW_TRY(lower_grouped(grouped, std::move(megatron), std::move(hf), scope));
  std::swap(lowered.hf, lowered.megatron);
  for (Piece& piece : lowered.pieces) {
    std::swap(piece.hf, piece.megatron);
    std::swap(piece.hf_origin, piece.megatron_origin);
  }
  return lowered;
}

Result<Lowered> lower_interleaved(const Interleaved& transform, const Dims& shape) {
  SW_TRY(check_axis(shape, transform.axis));
  if (shape[transform.axis] % transform.ways != 0) {
    return mismatch(fmt::format("shape {}", to_string(shape)),
                    fmt::format("axis {} to be a multiple of {}", transform.axis, transform.ways));
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
                    fmt::format("an even extent of axis {}", transform.axis));
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
                      fmt::format("{} to {} axes", axis, kMaxAxes - 1));
    }
    for (int i = 0; i <= part.size(); ++i) {
      whole.push_back(i == axis ? count : part[i < axis ? i : i - 1]);
    }
  } else {
    whole = hf[0];
    SW_TRY(check_axis(whole, axis));
    if (whole[axis] != count) {
      return mismatch(fmt::format("shape {}", to_string(whole)),
                      fmt::format("an extent of {} at axis {}", count, axis));
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
                      fmt::format("an extent of 1 at axis {}", axis));
    }
  }
  return inner;
}

/// The shape of the side that has them.
Result<Dims> with_units(const UnitAxis& unit, const Dims& inner) {
  if (unit.axis > inner.size() || inner.size() + unit.count > kMaxAxes) {
    return mismatch(fmt::format("shape {}", to_string(inner)),
                    fmt::format("{} to {} axes", unit.axis, kMaxAxes - unit.count));
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
