// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/quantisation_config.h"
#include "model/quantised_tensor.h"
#include "model/stored_tensors.h"

namespace shardwright {

/// The tensor whose packed values the stored one `index` is, by the layout that the config names:
/// `X_packed` of compressed-tensors, `X.qweight` of gptq and awq, fp4 `X.weight` of ModelOpt and
/// DeepSeek-V4. Nothing for all others. Small tensors beside the values (shape, order of columns)
/// are read where `stored` can. Errors, which name tensor and file: kUnmatchedSource where one is
/// missing, kShapeMismatch, kDtypeUnsupported, kDuplicateName, kOutOfBounds for groups that have no
/// scales, kLimit; those of reading.
[[nodiscard]] Result<std::optional<QuantisedTensor>> join_packed(const StoredTensors& stored,
                                                                 const QuantisationConfig& config,
                                                                 std::uint32_t index);

/// Whether a tensor of this name means something only beside packed values of any layout.
[[nodiscard]] bool is_part_of_packed(std::string_view name);

}  // namespace shardwright
