// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/diagnose.h"

namespace shardwright {

/// A text in both languages with named parameters in braces: `EP={ep}`. A doubled brace is one.
struct Template {
  std::string_view english;
  std::string_view chinese;
};

/// The value of a named parameter; the languages differ only where it is words.
struct Parameter {
  std::string_view name;
  Phrase value;

  Parameter(std::string_view n, Phrase v) : name(n), value(std::move(v)) {}
  Parameter(std::string_view n, std::string_view v)
      : name(n), value{std::string(v), std::string(v)} {}
  Parameter(std::string_view n, std::integral auto number)
      : Parameter(n, std::string_view(std::to_string(number))) {}
};

/// Fills a template in. REQUIRES: a parameter for every name in it.
[[nodiscard]] Phrase fill(const Template& text, std::span<const Parameter> parameters);
[[nodiscard]] Phrase fill(const Template& text, std::initializer_list<Parameter> parameters);

/// One row of the table of findings. Its page is the section `## L07` of docs/diagnose.md.
struct FindingRule {
  std::string_view code;
  Severity severity;
  Template message;
};

[[nodiscard]] std::span<const FindingRule> finding_rules();

/// The finding of this code. REQUIRES: the code is in the table.
[[nodiscard]] Finding make_finding(std::string_view code,
                                   std::initializer_list<Parameter> parameters);

}  // namespace shardwright
