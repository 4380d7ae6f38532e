// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// What the names of a MIMO model's modalities begin with.
inline constexpr std::string_view kModalitySubmodules = "modality_submodules.";

/// The name of the table beside a MIMO checkpoint's data.
inline constexpr std::string_view kComponentTable = "components.json";

/// Whether tensors are those of a MIMO model.
[[nodiscard]] bool is_mimo(const Catalog& catalog);

/// MIMO models, whose components had ranks of their own.
[[nodiscard]] const SourceFormat& mimo_source();

}  // namespace shardwright
