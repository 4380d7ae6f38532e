// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// The name of the table beside a MIMO checkpoint's data.
inline constexpr std::string_view kComponentTable = "components.json";

/// MIMO models, whose components had ranks of their own.
[[nodiscard]] const SourceFormat& mimo_source();

}  // namespace shardwright
