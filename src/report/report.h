// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/prepared_conversion.h"
#include "shardwright/verify.h"

namespace shardwright {

struct ReportRequest {
  std::string path = {};
  std::string other = {};  ///< a second checkpoint, compared with the first; empty: none
  Language language = Language::kEnglish;  ///< that the page opens in; it has both
  bool statistics = false;                 ///< of each tensor: reads every byte
  bool verify = false;                     ///< proves the checkpoints: reads every byte
  ProofOptions proof = {};
  std::optional<double> tolerance = std::nullopt;
};

/// A page about one or two checkpoints.
struct Report {
  std::string html;
  std::uint64_t tensors = 0;   ///< of the first checkpoint
  std::uint64_t findings = 0;  ///< errors of the diagnoses and the proofs
  bool is_equal = true;        ///< with two checkpoints: whether they are
  std::string_view verdict;    ///< the same as DiffReport::verdict()
  /// Parts of the page that could not be made and say why.
  std::vector<Error> failures;
};

/// Gathers what `inspect`, `diagnose`, `verify`, `diff` and `show` find out and makes one HTML page
/// of it. What is wrong with a checkpoint is in the page. Errors: kNotFound, kUsage, kCancelled.
[[nodiscard]] Result<Report> make_report(const ReportRequest& request);

/// A page that shows what a conversion would read and write.
[[nodiscard]] std::string plan_page(const PreparedConversion& conversion, Language language);

}  // namespace shardwright
