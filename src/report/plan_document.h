// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// A conversion as a page shows it: both sides' columns, which source tensors each target tensor is
/// made of, and how many bytes go from which holder to which.
[[nodiscard]] nlohmann::ordered_json plan_section(const PreparedConversion& conversion);

}  // namespace shardwright
