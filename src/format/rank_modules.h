// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "layout/legacy_parts.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// How the modules of a run's ranks are put together, as its arguments and the model's tensors
/// tell. `is_local`: they are Megatron-Core's own, not Transformer Engine's. What versions call
/// differently is as files of ranks have it (`names`), else as the version that the arguments are
/// of, else as the newest.
[[nodiscard]] LegacyModules rank_modules(std::span<const TensorDesc> model,
                                         const Arguments& arguments, bool is_local,
                                         const VersionedNames& names);

/// Whether arguments are those of a training run, which tell its version, not made of a model's
/// config.
[[nodiscard]] bool is_of_training_run(const Arguments& arguments);

/// Whether arguments say that the modules are Megatron-Core's own.
[[nodiscard]] bool uses_local_modules(const Arguments& arguments);

/// Whether a Megatron checkpoint's modules are Transformer Engine's: as the arguments say; where
/// they say nothing, only Transformer Engine fuses norms into linears and gives the final norm a
/// state.
[[nodiscard]] bool uses_transformer_engine(const Arguments& arguments, const VersionedNames& names,
                                           const Catalog& catalog);

}  // namespace shardwright
