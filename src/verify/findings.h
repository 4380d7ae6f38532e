// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/verify.h"

namespace shardwright {

/// Adds a finding. `object`: the file, tensor or entry that it is about.
void add_finding(VerifyReport& report, Code code, std::string object, std::string message,
                 Severity severity = Severity::kError);

/// Adds an error of a reader as a finding, once.
void add_finding(VerifyReport& report, const Error& error);

/// Whether an error with this code was found.
[[nodiscard]] bool has_finding(const VerifyReport& report, Code code);

}  // namespace shardwright
