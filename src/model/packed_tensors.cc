// SPDX-License-Identifier: Apache-2.0
#include "model/packed_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "base/text.h"
#include "model/expert_parameter.h"

namespace shardwright {
namespace {

using Packing = QuantisationConfig::Packing;
using Kind = PackedWeights::Kind;

constexpr std::string_view kPacked = "_packed";
constexpr std::string_view kQWeight = ".qweight";
constexpr std::string_view kScale = "_scale";
// Of the parameter that holds all experts of a layer.
constexpr std::string_view kExpertScale = "_weight_scale";
constexpr std::string_view kSecondExpertScale = "_weight_scale_2";
constexpr std::int64_t kNvfp4Group = 16;  // values that share an e4m3 scale
constexpr std::int64_t kMxfp4Group = 32;  // values that share an exponent

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;  // so that products of a few fit

std::string shape_text(DType dtype, const Dims& shape) {
  return fmt::format("{} {}", torch_name(dtype), to_string(shape));
}

bool is_small_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// One packed tensor, of which `values` are the stored values.
class PackedJoiner {
 public:
  PackedJoiner(const StoredTensors& stored, const QuantisationConfig& config, std::uint32_t values,
               std::string base)
      : stored_(stored),
        config_(config),
        index_(values),
        values_(stored[values]),
        base_(std::move(base)) {}

  Result<QuantisedTensor> integers_of_compressed_tensors(const PackedWeights& packed) {
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

  // [rows, columns / 2] bytes, the first value of a pair in its lower half. Of the parameter of all
  // experts [experts, in / 2, out]: pairs and groups run along `in`.
  Result<QuantisedTensor> fp4(int axes, std::int64_t group,
                              std::initializer_list<DType> scale_types,
                              std::string_view scale_ending, std::string_view scheme) {
    const bool are_bytes = values_.dtype == DType::kU8 || values_.dtype == DType::kI8;
    const auto columns = values_.shape.size() == axes
                             ? checked_mul<std::int64_t>(values_.shape[1], 2)
                             : std::nullopt;
    if (!columns || !are_bytes) {
      return fail(Code::kShapeMismatch, "{}: found {}, expected bytes of two fp4 values in {} axes",
                  stored_.where(index_), shape_text(values_.dtype, values_.shape), axes);
    }
    Dims shape = values_.shape;
    shape[1] = *columns;
    const std::uint32_t scales = SW_TRY(companion(scale_ending));
    if (*columns % group != 0) {
      return fail(Code::kShapeMismatch,
                  "{}: found {} columns, expected a multiple of {}, as {} has",
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

  Status add_second_scale(std::string_view ending, bool divides, QuantisedTensor& joined) {
    const std::uint32_t second = SW_TRY(companion(ending));
    const TensorDesc& desc = stored_[second];
    if (desc.dtype != DType::kF32 || Box::whole(desc.shape).volume() != 1) {
      return fail(Code::kShapeMismatch, "{}: found {}, expected one float32", stored_.where(second),
                  shape_text(desc.dtype, desc.shape));
    }
    joined.second = {second, divides};
    return {};
  }

  // [columns / n, rows] words of n neighbours in a column.
  Result<QuantisedTensor> gptq() {
    SW_TRY(expect_matrix(DType::kI32));
    const PackedWeights& stated = config_.packed.front();
    const std::int64_t rows = values_.shape[1];
    const auto order = stored_.find(base_ + ".g_idx");
    const std::int64_t bits = SW_TRY(bits_of_gptq(order));
    const std::int64_t per_word = 32 / bits;
    const auto columns = checked_mul(values_.shape[0], per_word);
    if (!columns) return too_large();
    const std::uint32_t scales = SW_TRY(companion(".scales"));
    const std::int64_t group = SW_TRY(group_of_gptq(*columns, scales));
    const std::int64_t groups = ceil_div(*columns, at_least_one(group));
    SW_TRY(expect_scales(scales, {{groups, rows}}));
    QuantisedTensor joined =
        SW_TRY(transposed({rows, *columns}, static_cast<int>(bits), scales, group));
    joined.words = {1, false};
    joined.strides = {per_word, rows * per_word};
    // What an asymmetric layer's zeros are too small by, its writer has taken from whole words.
    const std::uint32_t one_in_each = ~std::uint32_t{0} / ((std::uint32_t{1} << bits) - 1);
    SW_TRY(add_zeros({0, false}, per_word, groups, config_.has_lesser_zeros ? one_in_each : 0,
                     joined));
    joined.scheme = fmt::format("gptq int{}", bits);
    if (order) {
      SW_TRY(add_order(*order, false, joined));
    } else if (stated.is_ordered) {
      return missing(".g_idx");
    }
    return joined;
  }

  // [columns, rows / 8] words of eight neighbours in a row, the even ones first.
  Result<QuantisedTensor> awq() {
    SW_TRY(expect_matrix(DType::kI32));
    constexpr std::int64_t kPerWord = 8;
    const std::int64_t columns = values_.shape[0];
    const auto rows = checked_mul(values_.shape[1], kPerWord);
    if (!rows) return too_large();
    const std::int64_t stated = config_.packed.front().group;
    const std::int64_t group = stated == 0 ? at_least_one(columns) : stated;
    if (columns % group != 0) {
      return fail(Code::kShapeMismatch,
                  "{}: found {} rows, expected a multiple of group_size {} (quantization_config in "
                  "config.json)",
                  stored_.where(index_), columns, group);
    }
    const std::uint32_t scales = SW_TRY(companion(".scales"));
    SW_TRY(expect_scales(scales, {{columns / group, *rows}}));
    QuantisedTensor joined = SW_TRY(transposed({*rows, columns}, 4, scales, group));
    joined.words = {0, true};
    joined.strides = {kPerWord, *rows};
    SW_TRY(add_zeros({0, true}, kPerWord, columns / group, 0, joined));
    joined.scheme = "awq int4";
    return joined;
  }

 private:
  static std::int64_t at_least_one(std::int64_t extent) {
    return std::max<std::int64_t>(extent, 1);
  }

  [[nodiscard]] std::unexpected<Error> too_large() const {
    return fail(Code::kLimit, "{}: its shape is too large", stored_.where(index_));
  }

  [[nodiscard]] std::unexpected<Error> missing(std::string_view ending) const {
    return fail(Code::kUnmatchedSource,
                "{}: found packed values without {}{}, which they mean nothing without",
                stored_.where(index_), base_, ending);
  }

  [[nodiscard]] Result<std::uint32_t> companion(std::string_view ending) const {
    const auto found = stored_.find(base_ + std::string(ending));
    if (!found) return missing(ending);
    return *found;
  }

  [[nodiscard]] Status expect_matrix(DType dtype) const {
    if (values_.dtype == dtype && values_.shape.size() == 2) {
      const bool is_huge = values_.shape[0] > kMostExtent || values_.shape[1] > kMostExtent;
      return is_huge ? Status(too_large()) : Status();
    }
    return fail(Code::kShapeMismatch, "{}: found {}, expected {} of two axes",
                stored_.where(index_), shape_text(values_.dtype, values_.shape), torch_name(dtype));
  }

  [[nodiscard]] Status expect(std::uint32_t index, DType dtype, const Dims& shape) const {
    const TensorDesc& desc = stored_[index];
    if (desc.dtype == dtype && desc.shape == shape) return {};
    return fail(Code::kShapeMismatch, "{}: found {}, expected {} beside {} {}",
                stored_.where(index), shape_text(desc.dtype, desc.shape), shape_text(dtype, shape),
                values_.name, to_string(values_.shape));
  }

  [[nodiscard]] Status expect_scales(std::uint32_t index, const std::vector<Dims>& shapes) const {
    const TensorDesc& desc = stored_[index];
    if (!is_small_float(desc.dtype)) {
      return fail(Code::kDtypeUnsupported,
                  "{}: found scales of {}, expected float32, bfloat16 or float16",
                  stored_.where(index), torch_name(desc.dtype));
    }
    if (std::ranges::find(shapes, desc.shape) != shapes.end()) return {};
    return fail(Code::kShapeMismatch,
                "{}: found shape {}, expected {} beside {} {} (quantization_config in config.json)",
                stored_.where(index), to_string(desc.shape), to_string(shapes.front()),
                values_.name, to_string(values_.shape));
  }

  // A tensor of this shape, whose scales and zeros are still missing.
  [[nodiscard]] Result<QuantisedTensor> make(const Dims& shape, int bits) const {
    QuantisedTensor joined;
    joined.values = index_;
    joined.desc = {base_, DType::kBF16, shape};
    if (!element_count(shape)) return too_large();
    joined.bits = bits;
    joined.dtype = DType::kU8;
    return joined;
  }

  // Scales lie as [groups, rows].
  [[nodiscard]] Result<QuantisedTensor> transposed(const Dims& shape, int bits,
                                                   std::uint32_t scales, std::int64_t group) const {
    QuantisedTensor joined = SW_TRY(make(shape, bits));
    joined.desc.name += ".weight";
    joined.scales = scales;
    joined.block = {1, at_least_one(group)};
    joined.stride = {1, shape[0]};
    return joined;
  }

  // Zeros of gptq and awq: [groups, rows / n] words.
  Status add_zeros(const WordPacking& words, std::int64_t per_word, std::int64_t groups,
                   std::uint32_t added, QuantisedTensor& joined) const {
    const std::uint32_t zeros = SW_TRY(companion(".qzeros"));
    const std::int64_t rows = joined.desc.shape[0];
    if (rows % per_word != 0) {
      return fail(Code::kShapeMismatch, "{}: found {} columns, expected a multiple of {}",
                  stored_.where(index_), rows, per_word);
    }
    SW_TRY(expect(zeros, DType::kI32, {groups, rows / per_word}));
    joined.zeros = {zeros, {per_word, joined.block[1]}, {per_word, rows}, words, added};
    return {};
  }

  // By weight_shape; where it cannot be read by what is beside it.
  [[nodiscard]] Result<std::int64_t> columns_of(const PackedWeights& packed, std::int64_t rows,
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

  Status add_shape_and_order(const PackedWeights& packed, QuantisedTensor& joined) const {
    joined.more.push_back(SW_TRY(companion("_shape")));
    const auto order = stored_.find(base_ + "_g_idx");
    if (!order && packed.is_ordered && packed.group > 0) return missing("_g_idx");
    return order ? add_order(*order, true, joined) : Status();
  }

  // `-1` everywhere is compressed-tensors' way to say that there is no order. It gives groups of
  // other sizes another meaning than gptq does; only with equal ones both mean the same.
  Status add_order(std::uint32_t order, bool is_of_compressed_tensors,
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

  // Modules may differ from what the config says where it says so: then g_idx counts the columns.
  [[nodiscard]] Result<std::int64_t> bits_of_gptq(std::optional<std::uint32_t> order) const {
    const std::int64_t stated = config_.packed.front().bits;
    if (!config_.is_varied) return stated;
    if (!order) return missing(".g_idx");
    const Dims& columns = stored_[*order].shape;
    for (const std::int64_t bits : {2, 4, 8}) {
      const auto all = checked_mul<std::int64_t>(values_.shape[0], 32 / bits);
      if (all && columns == Dims{*all}) return bits;
    }
    return fail(Code::kShapeMismatch,
                "{}: found shape {}, expected one column for each integer of 2, 4 or 8 bits of {} "
                "{}",
                stored_.where(*order), to_string(columns), values_.name, to_string(values_.shape));
  }

  [[nodiscard]] Result<std::int64_t> group_of_gptq(std::int64_t columns,
                                                   std::uint32_t scales) const {
    const std::int64_t stated = config_.packed.front().group;
    const std::int64_t usual = stated == 0 ? columns : stated;
    if (!config_.is_varied) return usual;
    const Dims& shape = stored_[scales].shape;
    if (shape.size() == 2 && shape[0] > 0 && columns % shape[0] == 0) return columns / shape[0];
    // The last group may be shorter where it is of the usual size.
    if (shape.size() == 2 && shape[0] == ceil_div(columns, at_least_one(usual))) return usual;
    return fail(Code::kShapeMismatch,
                "{}: found shape {}, expected groups of equal size of {} columns",
                stored_.where(scales), to_string(shape), columns);
  }

  const StoredTensors& stored_;
  const QuantisationConfig& config_;
  std::uint32_t index_;
  const TensorDesc& values_;
  std::string base_;
};

std::string without(std::string_view name, std::string_view ending) {
  return std::string(name.substr(0, name.size() - ending.size()));
}

// Of the schemes that the config lists the one that fits.
Result<QuantisedTensor> join_by_scheme(PackedJoiner& joiner, const StoredTensors& stored,
                                       std::uint32_t index, DType scale_type,
                                       const QuantisationConfig& config) {
  std::optional<Result<QuantisedTensor>> best;
  for (const PackedWeights& packed : config.packed) {
    const bool are_integers = stored[index].dtype == DType::kI32;
    if (are_integers != (packed.kind == Kind::kIntegers)) continue;
    // Two schemes of fp4 are told apart by the type of their scales.
    const bool is_nvfp4 = packed.kind == Kind::kNvfp4;
    if (!are_integers && config.packed.size() > 1 && is_nvfp4 != (scale_type == DType::kF8E4M3)) {
      continue;
    }
    Result<QuantisedTensor> joined = [&]() -> Result<QuantisedTensor> {
      if (are_integers) return joiner.integers_of_compressed_tensors(packed);
      if (!is_nvfp4)
        return joiner.fp4(2, kMxfp4Group, {DType::kU8, DType::kF8E8M0}, "_scale", "mxfp4");
      QuantisedTensor fp4 = SW_TRY(joiner.fp4(2, kNvfp4Group, {DType::kF8E4M3}, "_scale", "nvfp4"));
      SW_TRY(joiner.add_second_scale("_global_scale", true, fp4));
      return fp4;
    }();
    if (joined && best && *best) {
      return fail(Code::kShapeMismatch,
                  "{}: fits several of config_groups in quantization_config of config.json, "
                  "expected one",
                  stored.where(index));
    }
    if (!best || joined) best = std::move(joined);
  }
  if (best) return std::move(*best);
  return fail(Code::kDtypeUnsupported,
              "{}: found {}, and no such weights in quantization_config of config.json",
              stored.where(index), shape_text(stored[index].dtype, stored[index].shape));
}

// What the stored values are called without what says that they are packed; empty where nothing
// does.
std::string base_of(const StoredTensors& stored, const QuantisationConfig& config,
                    const TensorDesc& values) {
  const std::string& name = values.name;
  const bool are_bytes = values.dtype == DType::kU8 || values.dtype == DType::kI8;
  switch (config.packing) {
    case Packing::kCompressedTensors:
      return name.ends_with(kPacked) ? without(name, kPacked) : "";
    case Packing::kGptq:
    case Packing::kAwq:
      return name.ends_with(kQWeight) ? without(name, kQWeight) : "";
    case Packing::kModelOpt:
      if (are_bytes && is_expert_parameter(name)) return name;
      return are_bytes && stored.find(name + "_scale") ? name : "";
    case Packing::kNone:
      break;
  }
  const bool is_weight = config.has_exponents && are_bytes && name.ends_with(".weight");
  return is_weight && stored.find(without(name, "weight") + "scale") ? name : "";
}

}  // namespace

Result<std::optional<QuantisedTensor>> join_packed(const StoredTensors& stored,
                                                   const QuantisationConfig& config,
                                                   std::uint32_t index) {
  if (!config.unsupported.empty()) return std::optional<QuantisedTensor>();
  const std::string base = base_of(stored, config, stored[index]);
  if (base.empty()) return std::optional<QuantisedTensor>();
  const bool is_transposed = config.packing == Packing::kGptq || config.packing == Packing::kAwq;
  const std::string plain = is_transposed ? base + ".weight" : base;
  if (plain != stored[index].name && stored.find(plain)) {
    return fail(Code::kDuplicateName, "{}: found {} too, expected one of them", stored.where(index),
                plain);
  }
  PackedJoiner joiner(stored, config, index, base);
  QuantisedTensor joined;
  if (config.packing == Packing::kGptq) {
    joined = SW_TRY(joiner.gptq());
  } else if (config.packing == Packing::kAwq) {
    joined = SW_TRY(joiner.awq());
  } else if (config.packing == Packing::kModelOpt) {
    const bool are_experts = is_expert_parameter(base);
    const std::string scale(are_experts ? kExpertScale : kScale);
    joined = SW_TRY(joiner.fp4(are_experts ? 3 : 2, kNvfp4Group, {DType::kF8E4M3}, scale, "nvfp4"));
    SW_TRY(joiner.add_second_scale(scale + "_2", false, joined));
  } else if (config.packing == Packing::kCompressedTensors) {
    const auto scales = stored.find(base + "_scale");
    joined = SW_TRY(join_by_scheme(joiner, stored, index,
                                   scales ? stored[*scales].dtype : DType::kF32, config));
  } else {
    PackedJoiner exponents(stored, config, index, without(base, ".weight"));
    joined = SW_TRY(exponents.fp4(2, kMxfp4Group, {DType::kF8E8M0, DType::kU8}, ".scale", "fp4"));
    joined.desc.name = base;
  }
  const DType scales = stored[joined.scales].dtype;
  joined.scale_dtype = scales == DType::kU8 ? DType::kF8E8M0 : scales;
  return std::optional(std::move(joined));
}

bool is_part_of_packed(std::string_view name) {
  constexpr std::array<std::string_view, 9> kEndings = {
      ".weight_packed",       ".weight_shape",   ".weight_zero_point", ".weight_g_idx",
      ".weight_global_scale", ".weight_scale_2", ".qweight",           ".qzeros",
      ".pre_quant_scale"};
  const bool is_of_experts =
      name.ends_with(kSecondExpertScale) && is_expert_parameter(without(name, kSecondExpertScale));
  return is_of_experts || ends_as_any(name, kEndings);
}

}  // namespace shardwright
