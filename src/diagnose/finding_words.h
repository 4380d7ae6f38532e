// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/diagnose.h"

namespace shardwright {

/// "error", "warning" or "info": as texts and JSON documents have it.
[[nodiscard]] std::string_view severity_name(Severity severity);
/// "certain", "likely" or "ambiguous", likewise.
[[nodiscard]] std::string_view confidence_name(Confidence confidence);

}  // namespace shardwright
