// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// Llamas as Meta publishes them: `consolidated.NN.pth`, one file of each model-parallel rank, and
/// `params.json`.
[[nodiscard]] const SourceFormat& consolidated_source();

}  // namespace shardwright
