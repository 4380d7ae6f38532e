// SPDX-License-Identifier: Apache-2.0
#include "model/grouped_transform.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "model/piece_shape.h"

namespace shardwright {
namespace {

// A rule of the largest known model lowers to some thousand pieces.
constexpr std::int64_t kMaxPieces = std::int64_t{1} << 20;

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
      return mismatch(translated("{} rows with copies", numbers.rows), "one");
    }
    // Products of three such numbers may not fit.
    if (numbers.repeat > kMaxGroupNumber / numbers.rows / numbers.copies) {
      return fail(Code::kLimit, "'{}': found too many rows in one group, expected at most {}",
                  part.rows.text(), kMaxGroupNumber);
    }
    if (numbers.offset + numbers.rows > numbers.stride) {
      return mismatch(translated("{} rows at {}", numbers.rows, numbers.offset),
                      translated("them inside a stride of {}", numbers.stride));
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
      return mismatch(translated("{} rows of one tensor in a group", taken),
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
                  translated("{} rows in {}", rows, what));
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
                    translated("keys of a number of heads that divides {}", heads));
  }
  return key_rows / width;
}

}  // namespace

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
                        translated("{} but for axis 0", to_string(hf[0])));
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

}  // namespace shardwright
