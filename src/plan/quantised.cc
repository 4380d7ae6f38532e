// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised.h"

#include <optional>
#include <string_view>

#include "base/checked.h"
#include "base/fail.h"
#include "tensor/dequantise.h"

namespace shardwright {
namespace {

using Count = std::optional<std::int64_t>;

int bits_of_values(const StoredTensor& values, const QuantisedSource& quantised) {
  return quantised.bits != 0 ? quantised.bits : 8 / values_per_byte(values.desc.dtype);
}

// In one piece, of the tensor's own shape.
bool is_whole_chunk(const StoredTensor& tensor) {
  return tensor.encoding == Encoding::kRaw && tensor.chunks.size() == 1 &&
         tensor.chunks.box(0) == Box::whole(tensor.desc.shape);
}

bool is_plain_chunk(const StoredTensor& tensor) {
  return is_whole_chunk(tensor) && tensor.chunks[0].strides.empty() &&
         tensor.chunks.range(0).length == static_cast<std::uint64_t>(tensor.chunks.box(0).volume() *
                                                                     bytes_of(tensor.desc.dtype));
}

// Entries up to the last one that an element of `shape` has. Nothing where a grid has no meaning.
Count entries_of(const Dims& shape, const Dims& block, const Dims& stride, int words_axis,
                 int per_word) {
  if (block.size() != shape.size() || stride.size() != shape.size()) return std::nullopt;
  Count last = 0;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (block[axis] < 1 || stride[axis] < 0) return std::nullopt;
    if (axis == words_axis && block[axis] != per_word) return std::nullopt;
    const Count behind = checked_mul((shape[axis] - 1) / block[axis], stride[axis]);
    last = behind && last ? checked_add(*last, *behind) : std::nullopt;
  }
  return last ? checked_add<std::int64_t>(*last, words_axis >= 0 ? per_word : 1) : std::nullopt;
}

class Check {
 public:
  Check(const Catalog& catalog, const QuantisedSource& quantised)
      : catalog_(catalog),
        quantised_(quantised),
        values_(catalog.tensors[quantised.values]),
        shape_(values_.desc.shape) {}

  Status run() const {
    SW_TRY(check_values());
    if (shape_.size() > 0 && Box::whole(shape_).is_empty()) return {};
    SW_TRY(check_scales());
    SW_TRY(check_zeros());
    if (quantised_.second) {
      const StoredTensor& second = catalog_.tensors[quantised_.second->tensor];
      if (!is_plain_chunk(second) || !is_scale(second.desc.dtype) ||
          second.chunks.box(0).volume() != 1) {
        return invalid(second, "are multiplied with what is no single number");
      }
    }
    if (!quantised_.groups) return {};
    const StoredTensor& groups = catalog_.tensors[quantised_.groups->tensor];
    const int axis = quantised_.groups->axis;
    const bool fits = axis >= 0 && axis < shape_.size() && is_plain_chunk(groups) &&
                      groups.desc.dtype == DType::kI32 &&
                      groups.chunks.box(0).volume() == shape_[axis];
    return fits ? Status() : invalid(groups, "have groups that no column finds");
  }

 private:
  [[nodiscard]] Status invalid(const StoredTensor& with, std::string_view why) const {
    return fail(Code::kPlanInvalid, "tensor {}: its scales {} {} {}", values_.desc.name,
                with.desc.name, to_string(with.desc.shape), why);
  }

  [[nodiscard]] Status check_values() const {
    const DType dtype = values_.desc.dtype;
    const bool is_integer = quantised_.bits != 0;
    if (is_integer ? !is_integer_width(quantised_.bits) : !is_quantised(dtype)) {
      return invalid(values_, "multiply values that are not quantised");
    }
    const std::string_view no_chunk = "or the values are not one whole chunk";
    if (!is_whole_chunk(values_)) return invalid(values_, no_chunk);
    const std::uint64_t bytes = values_.chunks.range(0).length;
    const WordPacking& words = quantised_.words;
    if (!is_integer && words.axis < 0) {
      const std::int64_t whole =
          stored_value_bytes(catalog_, quantised_, values_.chunks.box(0).volume());
      return bytes == static_cast<std::uint64_t>(whole) ? Status() : invalid(values_, no_chunk);
    }
    const bool can_share = is_integer || dtype == DType::kF4E2M1X2;
    if (!can_share || words.axis >= shape_.size() ||
        (words.is_interleaved && quantised_.bits != 4)) {
      return invalid(values_, "have no such words");
    }
    if (Box::whole(shape_).is_empty()) return {};
    Dims block = Dims::filled(shape_.size(), 1);
    if (words.axis >= 0) block[words.axis] = values_per_word(quantised_);
    Dims strides = values_.chunks[0].strides;
    if (strides.empty()) strides = row_major_strides(shape_);
    const Count count = entries_of(shape_, block, strides, words.axis, values_per_word(quantised_));
    const auto per_byte = static_cast<std::uint64_t>(8 / bits_in_words(quantised_));
    if (!count || static_cast<std::uint64_t>(*count) > bytes * per_byte) {
      return invalid(values_, "belong to values that end before the tensor does");
    }
    return {};
  }

  [[nodiscard]] Status check_scales() const {
    const StoredTensor& scales = catalog_.tensors[quantised_.scales];
    if (!is_scale(scales.desc.dtype))
      return invalid(scales, "are of a type that scales do not have");
    if (!is_plain_chunk(scales)) return invalid(scales, "or the values are not one whole chunk");
    const Count count = entries_of(shape_, quantised_.block, quantised_.stride, -1, 1);
    if (!count) return invalid(scales, "have no blocks or lie too far apart");
    if (*count > scales.chunks.box(0).volume()) return invalid(scales, "end before the values do");
    return {};
  }

  [[nodiscard]] Status check_zeros() const {
    if (!quantised_.zeros) return {};
    const StoredTensor& zeros = catalog_.tensors[quantised_.zeros->tensor];
    const ZeroPoints& grid = *quantised_.zeros;
    if (quantised_.bits == 0 || grid.words.axis >= shape_.size() || !is_plain_chunk(zeros)) {
      return invalid(zeros, "have zeros that are not one whole chunk");
    }
    if (grid.added != 0 && grid.words.axis < 0) return invalid(zeros, "have zeros in no words");
    const Count count =
        entries_of(shape_, grid.block, grid.stride, grid.words.axis, values_per_word(quantised_));
    const std::uint64_t per_byte = static_cast<std::uint64_t>(8 / quantised_.bits);
    if (!count || static_cast<std::uint64_t>(*count) > zeros.chunks.range(0).length * per_byte) {
      return invalid(zeros, "have zeros that end before the values do");
    }
    return {};
  }

  const Catalog& catalog_;
  const QuantisedSource& quantised_;
  const StoredTensor& values_;
  const Dims& shape_;
};

}  // namespace

Status check_quantised(const Catalog& catalog, const QuantisedSource& quantised) {
  const std::size_t count = catalog.tensors.size();
  bool exists = quantised.values < count;
  for (const std::uint32_t companion : companions_of(quantised)) {
    exists = exists && companion < count && companion != quantised.values;
  }
  if (!exists) {
    return fail(Code::kPlanInvalid, "plan: scales or their values are tensors that are not there");
  }
  return Check(catalog, quantised).run();
}

std::int64_t stored_value_bytes(const Catalog& catalog, const QuantisedSource& quantised,
                                std::int64_t count) {
  const std::int64_t bits = bits_of_values(catalog.tensors[quantised.values], quantised);
  return ceil_div<std::int64_t>(count, 8 / bits);
}

}  // namespace shardwright
