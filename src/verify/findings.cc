// SPDX-License-Identifier: Apache-2.0
#include "verify/findings.h"

#include <algorithm>

namespace shardwright {

bool VerifyReport::has_errors() const {
  return std::ranges::any_of(findings,
                             [](const VerifyFinding& f) { return f.severity == Severity::kError; });
}

void add_finding(VerifyReport& report, Code code, std::string object, std::string message,
                 Severity severity) {
  if (!report.told.emplace(code, message).second) return;
  report.findings.push_back({code, severity, std::move(object), std::move(message)});
}

void add_finding(VerifyReport& report, const Error& error) {
  // A message begins with its object.
  const std::size_t colon = error.message.find(": ");
  std::string object = colon == std::string::npos ? "" : error.message.substr(0, colon);
  add_finding(report, error.code, std::move(object), error.message);
}

bool has_finding(const VerifyReport& report, Code code) {
  return std::ranges::any_of(report.findings,
                             [&](const VerifyFinding& finding) { return finding.code == code; });
}

}  // namespace shardwright
