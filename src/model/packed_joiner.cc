// SPDX-License-Identifier: Apache-2.0
#include "model/packed_joiner.h"

#include <fmt/ranges.h>

#include "base/checked.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;  // so that products of a few fit

bool is_small_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

std::string shape_text(DType dtype, const Dims& shape) {
  return fmt::format("{} {}", torch_name(dtype), to_string(shape));
}

Result<QuantisedTensor> PackedJoiner::integers_of_compressed_tensors(const PackedWeights& packed) {
  SW_TRY(expect_matrix(DType::kI32));
  const std::int64_t per_word = 32 / packed.bits;
  const std::int64_t rows = values_.shape[0];
  const std::int64_t words = values_.shape[1];
  const std::uint32_t scales = SW_TRY(companion("_scale"));
  const std::int64_t columns = SW_TRY(columns_of(packed, rows, words, stored_[scales].shape));
  const std::int64_t group = packed.group > 0 ? packed.group : columns;
  if (packed.group > 0 && columns % group != 0) {
    return fail(Code::kShapeMismatch,
                "{}: found {} columns, expected a multiple of group_size {} "
                "(quantization_config in config.json)",
                stored_.where(index_), columns, group);
  }
  const std::int64_t groups = packed.group > 0 ? columns / group : 1;
  std::vector<Dims> fitting = {{rows, groups}};
  if (packed.group == 0) fitting.push_back({rows});
  if (packed.group < 0) fitting = {{1}, {}, {1, 1}};
  SW_TRY(expect_scales(scales, fitting));
  QuantisedTensor joined = SW_TRY(make({rows, columns}, packed.bits));
  joined.scales = scales;
  joined.block = {packed.group < 0 ? std::max<std::int64_t>(rows, 1) : 1, at_least_one(group)};
  joined.stride = {packed.group < 0 ? 0 : groups, 1};
  joined.strides = {words * per_word, 1};
  const auto zeros = stored_.find(base_ + "_zero_point");
  if (packed.is_symmetric) {
    if (zeros) {
      return fail(Code::kUnmatchedSource,
                  "{}: found zero points of weights that are symmetric by quantization_config in "
                  "config.json",
                  stored_.where(*zeros));
    }
    joined.zero = 1 << (packed.bits - 1);
  } else {
    // Two's complement moved to whole numbers, as the values are: the differences are the same.
    const std::uint32_t found = SW_TRY(companion("_zero_point"));
    SW_TRY(expect(found, DType::kI32, {ceil_div(rows, per_word), groups}));
    joined.zeros = {found, {per_word, at_least_one(group)}, {groups * per_word, per_word}, {0}};
  }
  SW_TRY(add_shape_and_order(packed, joined));
  joined.scheme = fmt::format("int{}", packed.bits);
  return joined;
}

Result<QuantisedTensor> PackedJoiner::fp4(int axes, std::int64_t group,
                                          std::initializer_list<DType> scale_types,
                                          std::string_view scale_ending, std::string_view scheme) {
  const bool are_bytes = values_.dtype == DType::kU8 || values_.dtype == DType::kI8;
  const auto columns =
      values_.shape.size() == axes ? checked_mul<std::int64_t>(values_.shape[1], 2) : std::nullopt;
  if (!columns || !are_bytes) {
    return fail(Code::kShapeMismatch, "{}: found {}, expected bytes of two fp4 values in {} axes",
                stored_.where(index_), shape_text(values_.dtype, values_.shape), axes);
  }
  Dims shape = values_.shape;
  shape[1] = *columns;
  const std::uint32_t scales = SW_TRY(companion(scale_ending));
  if (*columns % group != 0) {
    return fail(Code::kShapeMismatch, "{}: found {} columns, expected a multiple of {}, as {} has",
                stored_.where(index_), *columns, group, scheme);
  }
  const TensorDesc& factors = stored_[scales];
  Dims grid = shape;
  grid[1] /= group;
  const bool has_type = std::ranges::find(scale_types, factors.dtype) != scale_types.end();
  if (!has_type || !(factors.shape == grid)) {
    return fail(has_type ? Code::kShapeMismatch : Code::kDtypeUnsupported,
                "{}: found {}, expected {} as the groups of {} of {}", stored_.where(scales),
                shape_text(factors.dtype, factors.shape), shape_text(*scale_types.begin(), grid),
                group, values_.name);
  }
  QuantisedTensor joined = SW_TRY(make(shape, 0));
  joined.scales = scales;
  joined.block = Dims::filled(axes, 1);
  joined.block[1] = group;
  joined.stride = row_major_strides(grid);
  joined.dtype = DType::kF4E2M1X2;
  joined.scheme = scheme;
  if (axes == 3) {
    joined.words.axis = 1;
    joined.strides = {*columns * shape[2], 2 * shape[2], 2};
  }
  return joined;
}

Status PackedJoiner::add_second_scale(std::string_view ending, bool divides,
                                      QuantisedTensor& joined) {
  const std::uint32_t second = SW_TRY(companion(ending));
  const TensorDesc& desc = stored_[second];
  if (desc.dtype != DType::kF32 || Box::whole(desc.shape).volume() != 1) {
    return fail(Code::kShapeMismatch, "{}: found {}, expected one float32", stored_.where(second),
                shape_text(desc.dtype, desc.shape));
  }
  joined.second = {second, divides};
  return {};
}

std::unexpected<Error> PackedJoiner::too_large() const {
  return fail(Code::kLimit, "{}: its shape is too large", stored_.where(index_));
}

std::unexpected<Error> PackedJoiner::missing(std::string_view ending) const {
  return fail(Code::kUnmatchedSource,
              "{}: found packed values without {}{}, which they mean nothing without",
              stored_.where(index_), base_, ending);
}

Result<std::uint32_t> PackedJoiner::companion(std::string_view ending) const {
  const auto found = stored_.find(base_ + std::string(ending));
  if (!found) return missing(ending);
  return *found;
}

Status PackedJoiner::expect_matrix(DType dtype) const {
  if (values_.dtype == dtype && values_.shape.size() == 2) {
    const bool is_huge = values_.shape[0] > kMostExtent || values_.shape[1] > kMostExtent;
    return is_huge ? Status(too_large()) : Status();
  }
  return fail(Code::kShapeMismatch, "{}: found {}, expected {} of two axes", stored_.where(index_),
              shape_text(values_.dtype, values_.shape), torch_name(dtype));
}

Status PackedJoiner::expect(std::uint32_t index, DType dtype, const Dims& shape) const {
  const TensorDesc& desc = stored_[index];
  if (desc.dtype == dtype && desc.shape == shape) return {};
  return fail(Code::kShapeMismatch, "{}: found {}, expected {} beside {} {}", stored_.where(index),
              shape_text(desc.dtype, desc.shape), shape_text(dtype, shape), values_.name,
              to_string(values_.shape));
}

Status PackedJoiner::expect_scales(std::uint32_t index, const std::vector<Dims>& shapes) const {
  const TensorDesc& desc = stored_[index];
  if (!is_small_float(desc.dtype)) {
    return fail(Code::kDtypeUnsupported,
                "{}: found scales of {}, expected float32, bfloat16 or float16",
                stored_.where(index), torch_name(desc.dtype));
  }
  if (std::ranges::find(shapes, desc.shape) != shapes.end()) return {};
  return fail(Code::kShapeMismatch,
              "{}: found shape {}, expected {} beside {} {} (quantization_config in config.json)",
              stored_.where(index), to_string(desc.shape), to_string(shapes.front()), values_.name,
              to_string(values_.shape));
}

Result<QuantisedTensor> PackedJoiner::make(const Dims& shape, int bits) const {
  QuantisedTensor joined;
  joined.values = index_;
  joined.desc = {base_, DType::kBF16, shape};
  if (!element_count(shape)) return too_large();
  joined.bits = bits;
  joined.dtype = DType::kU8;
  return joined;
}

Result<std::int64_t> PackedJoiner::columns_of(const PackedWeights& packed, std::int64_t rows,
                                              std::int64_t words, const Dims& scales) const {
  const std::int64_t per_word = 32 / packed.bits;
  const std::uint32_t shape = SW_TRY(companion("_shape"));
  const TensorDesc& desc = stored_[shape];
  if (!(desc.shape == Dims{2}) || (desc.dtype != DType::kI64 && desc.dtype != DType::kI32)) {
    return fail(Code::kShapeMismatch, "{}: found {}, expected two whole numbers",
                stored_.where(shape), shape_text(desc.dtype, desc.shape));
  }
  const auto most = checked_mul(words, per_word);
  if (!most) return too_large();
  if (!stored_.can_read()) {
    const auto grouped = packed.group > 0 && scales.size() == 2
                             ? checked_mul(scales[1], packed.group)
                             : std::nullopt;
    return grouped && *grouped <= *most && *most - *grouped < per_word ? *grouped : *most;
  }
  const std::vector<std::int64_t> numbers = SW_TRY(stored_.numbers(shape));
  const bool fits = numbers.size() == 2 && numbers[0] == rows && numbers[1] >= 0 &&
                    numbers[1] <= *most && *most - numbers[1] < per_word;
  if (fits) return numbers[1];
  return fail(Code::kShapeMismatch,
              "{}: found {}, expected the shape that {} {} has with {} integers of {} bits in "
              "each word",
              stored_.where(shape), fmt::join(numbers, " x "), values_.name,
              to_string(values_.shape), per_word, packed.bits);
}

Status PackedJoiner::add_shape_and_order(const PackedWeights& packed,
                                         QuantisedTensor& joined) const {
  joined.more.push_back(SW_TRY(companion("_shape")));
  const auto order = stored_.find(base_ + "_g_idx");
  if (!order && packed.is_ordered && packed.group > 0) return missing("_g_idx");
  return order ? add_order(*order, true, joined) : Status();
}

Status PackedJoiner::add_order(std::uint32_t order, bool is_of_compressed_tensors,
                               QuantisedTensor& joined) const {
  const std::int64_t columns = joined.desc.shape[1];
  const std::int64_t group = joined.block[1];
  SW_TRY(expect(order, DType::kI32, {columns}));
  joined.more.push_back(order);
  if (!stored_.can_read() || columns == 0) return {};
  const std::vector<std::int64_t> found = SW_TRY(stored_.numbers(order));
  if (is_of_compressed_tensors && std::ranges::count(found, -1) == std::ssize(found)) return {};
  const std::int64_t groups = ceil_div(columns, group);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(groups), 0);
  bool is_in_order = true;
  for (std::size_t column = 0; column < found.size(); ++column) {
    const std::int64_t at = found[column];
    if (at < 0 || at >= groups) {
      return fail(Code::kOutOfBounds, "{}: found group {} for column {}, expected 0 to {}",
                  stored_.where(order), at, column, groups - 1);
    }
    ++sizes[static_cast<std::size_t>(at)];
    is_in_order = is_in_order && at == static_cast<std::int64_t>(column) / group;
  }
  if (is_in_order) return {};
  for (std::size_t i = 0; is_of_compressed_tensors && i < sizes.size(); ++i) {
    if (sizes[i] == group) continue;
    return fail(Code::kShapeMismatch, "{}: found {} columns in group {}, expected {}",
                stored_.where(order), sizes[i], i, group);
  }
  joined.more.pop_back();
  joined.groups = {order, 1};
  return {};
}

}  // namespace shardwright
