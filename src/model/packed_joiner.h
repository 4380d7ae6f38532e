// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "model/quantisation_config.h"
#include "model/quantised_tensor.h"
#include "model/stored_tensors.h"

namespace shardwright {

/// For messages: `torch.int32 [4, 8]`.
[[nodiscard]] std::string shape_text(DType dtype, const Dims& shape);

/// Puts one packed tensor together: `values` are the stored values, and what else belongs to them
/// is named after `base`. Errors name the part that is missing or does not fit: kUnmatchedSource,
/// kShapeMismatch, kDtypeUnsupported, kOutOfBounds, kLimit.
class PackedJoiner {
 public:
  PackedJoiner(const StoredTensors& stored, const QuantisationConfig& config, std::uint32_t values,
               std::string base)
      : stored_(stored),
        config_(config),
        index_(values),
        values_(stored[values]),
        base_(std::move(base)) {}

  /// `X_packed`: words of integers along the rows.
  [[nodiscard]] Result<QuantisedTensor> integers_of_compressed_tensors(const PackedWeights& packed);
  /// [rows, columns / 2] bytes, the first value of a pair in its lower half. Of the parameter of
  /// all experts [experts, in / 2, out]: pairs and groups run along `in`.
  [[nodiscard]] Result<QuantisedTensor> fp4(int axes, std::int64_t group,
                                            std::initializer_list<DType> scale_types,
                                            std::string_view scale_ending, std::string_view scheme);
  /// The one float32 that all scales are multiplied with, or divided by.
  [[nodiscard]] Status add_second_scale(std::string_view ending, bool divides,
                                        QuantisedTensor& joined);
  /// [columns / n, rows] words of n neighbours in a column.
  [[nodiscard]] Result<QuantisedTensor> gptq();
  /// [columns, rows / 8] words of eight neighbours in a row, the even ones first.
  [[nodiscard]] Result<QuantisedTensor> awq();

 private:
  static std::int64_t at_least_one(std::int64_t extent) {
    return std::max<std::int64_t>(extent, 1);
  }

  [[nodiscard]] std::unexpected<Error> too_large() const;
  [[nodiscard]] std::unexpected<Error> missing(std::string_view ending) const;
  [[nodiscard]] Result<std::uint32_t> companion(std::string_view ending) const;
  [[nodiscard]] Status expect_matrix(DType dtype) const;
  [[nodiscard]] Status expect(std::uint32_t index, DType dtype, const Dims& shape) const;
  [[nodiscard]] Status expect_scales(std::uint32_t index, const std::vector<Dims>& shapes) const;
  // A tensor of this shape, whose scales and zeros are still missing.
  [[nodiscard]] Result<QuantisedTensor> make(const Dims& shape, int bits) const;
  // Scales lie as [groups, rows].
  [[nodiscard]] Result<QuantisedTensor> transposed(const Dims& shape, int bits,
                                                   std::uint32_t scales, std::int64_t group) const;
  // Zeros of gptq and awq: [groups, rows / n] words.
  [[nodiscard]] Status add_zeros(const WordPacking& words, std::int64_t per_word,
                                 std::int64_t groups, std::uint32_t added,
                                 QuantisedTensor& joined) const;
  // By weight_shape; where it cannot be read by what is beside it.
  [[nodiscard]] Result<std::int64_t> columns_of(const PackedWeights& packed, std::int64_t rows,
                                                std::int64_t words, const Dims& scales) const;
  [[nodiscard]] Status add_shape_and_order(const PackedWeights& packed,
                                           QuantisedTensor& joined) const;
  // `-1` everywhere is compressed-tensors' way to say that there is no order. It gives groups of
  // other sizes another meaning than gptq does; only with equal ones both mean the same.
  [[nodiscard]] Status add_order(std::uint32_t order, bool is_of_compressed_tensors,
                                 QuantisedTensor& joined) const;
  // Modules may differ from what the config says where it says so: then g_idx counts the columns.
  [[nodiscard]] Result<std::int64_t> bits_of_gptq(std::optional<std::uint32_t> order) const;
  [[nodiscard]] Result<std::int64_t> group_of_gptq(std::int64_t columns,
                                                   std::uint32_t scales) const;

  const StoredTensors& stored_;
  const QuantisationConfig& config_;
  std::uint32_t index_;
  const TensorDesc& values_;
  std::string base_;
};

}  // namespace shardwright
