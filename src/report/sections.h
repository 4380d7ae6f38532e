// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "shardwright/verify.h"
#include "verify/statistics.h"

namespace shardwright {

// What the other commands find out, as parts of a page's document. Sentences that exist in both
// languages come as `{"en": ..., "zh": ...}`.

[[nodiscard]] nlohmann::ordered_json diagnosis_section(const Diagnosis& diagnosis);

[[nodiscard]] nlohmann::ordered_json proof_section(const VerifyReport& report);

/// Columns with a row for each tensor that both sides have, and the names that only one has.
[[nodiscard]] nlohmann::ordered_json difference_section(const DiffReport& report);

/// Columns in the order of `names`; a tensor without statistics has null everywhere.
[[nodiscard]] nlohmann::ordered_json statistics_section(
    const std::vector<std::string>& names, std::span<const StoredTensor> tensors,
    std::span<const TensorStatistics> statistics);

[[nodiscard]] nlohmann::ordered_json error_section(const Error& error);

}  // namespace shardwright
