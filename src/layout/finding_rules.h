// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "layout/texts.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// One row of the table of findings. Its text is in the catalogue (texts.h); its page is the
/// section
/// `## L07` of docs/diagnose.md.
struct FindingRule {
  std::string_view code;
  Severity severity;
};

[[nodiscard]] std::span<const FindingRule> finding_rules();

/// The finding of this code. REQUIRES: the code is in the table.
[[nodiscard]] Finding make_finding(std::string_view code,
                                   std::initializer_list<Parameter> parameters);

/// Adds it, more or less severe than the table has it where that is said.
void add_finding(Diagnosis& diagnosis, std::string_view code,
                 std::initializer_list<Parameter> parameters,
                 std::optional<Severity> severity = std::nullopt);

}  // namespace shardwright
