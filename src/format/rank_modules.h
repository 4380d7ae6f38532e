// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "layout/legacy_parts.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// How the modules of a run's ranks are put together, as its arguments and the model's tensors
/// tell. `is_local`: they are Megatron-Core's own, not Transformer Engine's.
[[nodiscard]] LegacyModules rank_modules(std::span<const TensorDesc> model,
                                         const Arguments& arguments, bool is_local);

/// Whether a Megatron checkpoint's modules are Transformer Engine's: as the arguments say; without
/// them, only Transformer Engine gives the final norm a state.
[[nodiscard]] bool uses_transformer_engine(const Arguments& arguments, const Catalog& catalog);

}  // namespace shardwright
