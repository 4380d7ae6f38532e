// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "model/packed_joiner.h"

namespace shardwright {

Result<QuantisedTensor> PackedJoiner::gptq() {
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
  SW_TRY(
      add_zeros({0, false}, per_word, groups, config_.has_lesser_zeros ? one_in_each : 0, joined));
  joined.scheme = fmt::format("gptq int{}", bits);
  if (order) {
    SW_TRY(add_order(*order, false, joined));
  } else if (stated.is_ordered) {
    return missing(".g_idx");
  }
  return joined;
}

Result<QuantisedTensor> PackedJoiner::awq() {
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

Result<QuantisedTensor> PackedJoiner::transposed(const Dims& shape, int bits, std::uint32_t scales,
                                                 std::int64_t group) const {
  QuantisedTensor joined = SW_TRY(make(shape, bits));
  joined.desc.name += ".weight";
  joined.scales = scales;
  joined.block = {1, at_least_one(group)};
  joined.stride = {1, shape[0]};
  return joined;
}

Status PackedJoiner::add_zeros(const WordPacking& words, std::int64_t per_word, std::int64_t groups,
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

Result<std::int64_t> PackedJoiner::bits_of_gptq(std::optional<std::uint32_t> order) const {
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

Result<std::int64_t> PackedJoiner::group_of_gptq(std::int64_t columns, std::uint32_t scales) const {
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

}  // namespace shardwright
