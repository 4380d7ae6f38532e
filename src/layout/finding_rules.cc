// SPDX-License-Identifier: Apache-2.0
#include "layout/finding_rules.h"

#include <algorithm>
#include <array>

namespace shardwright {
namespace {

constexpr auto kInfo = Severity::kInfo;
constexpr auto kWarning = Severity::kWarning;
constexpr auto kError = Severity::kError;

constexpr std::array kRules = {
    FindingRule{"L01", kInfo},    FindingRule{"L02", kInfo},    FindingRule{"L03", kInfo},
    FindingRule{"L04", kWarning}, FindingRule{"L05", kError},   FindingRule{"L06", kInfo},
    FindingRule{"L07", kError},   FindingRule{"L08", kError},   FindingRule{"L09", kError},
    FindingRule{"L10", kWarning}, FindingRule{"L11", kError},   FindingRule{"L12", kInfo},
    FindingRule{"L13", kInfo},    FindingRule{"L14", kError},   FindingRule{"L15", kInfo},
    FindingRule{"L16", kWarning}, FindingRule{"L17", kWarning}, FindingRule{"L18", kError},
    FindingRule{"L19", kError},   FindingRule{"L20", kWarning}, FindingRule{"L21", kError},
    FindingRule{"L22", kError},   FindingRule{"L23", kWarning}, FindingRule{"L24", kInfo},
    FindingRule{"L25", kInfo},    FindingRule{"L26", kInfo},    FindingRule{"L27", kError},
    FindingRule{"L28", kInfo},    FindingRule{"L29", kWarning}, FindingRule{"L30", kError},
    FindingRule{"L31", kWarning}, FindingRule{"L32", kError},   FindingRule{"L33", kError},
    FindingRule{"L34", kInfo},    FindingRule{"L35", kError},   FindingRule{"L36", kWarning},
    FindingRule{"L37", kError},   FindingRule{"L38", kError},   FindingRule{"L39", kError},
    FindingRule{"L40", kError},   FindingRule{"L41", kError},   FindingRule{"L42", kError},
    FindingRule{"L43", kError},   FindingRule{"L44", kWarning}, FindingRule{"L45", kWarning},
    FindingRule{"L46", kInfo},    FindingRule{"L47", kWarning}, FindingRule{"L48", kError},
    FindingRule{"L49", kError},   FindingRule{"L50", kWarning}, FindingRule{"L51", kError},
};

}  // namespace

std::span<const FindingRule> finding_rules() { return kRules; }

Finding make_finding(std::string_view code, std::initializer_list<Parameter> parameters) {
  const auto rule = std::ranges::find(kRules, code, &FindingRule::code);
  return {std::string(rule->code), rule->severity, phrase(TextKey::named(code), parameters)};
}

void add_finding(Diagnosis& diagnosis, std::string_view code,
                 std::initializer_list<Parameter> parameters, std::optional<Severity> severity) {
  Finding finding = make_finding(code, parameters);
  if (severity) finding.severity = *severity;
  diagnosis.findings.push_back(std::move(finding));
}

std::vector<std::string> finding_codes() {
  std::vector<std::string> codes;
  for (const FindingRule& rule : kRules) codes.emplace_back(rule.code);
  return codes;
}

bool Diagnosis::has_errors() const {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::kError; });
}

}  // namespace shardwright
