// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Of a model whose layers with a sliding window have other attention than those without (Gemma 4):
/// tells the catalog, from the run's arguments, which layers the stack of either kind holds, and
/// gives attention that is stored under one name for both the name of its kind. Leaves other
/// models, and arguments that do not say it, as they are.
void tell_attention_kinds(Checkpoint& checkpoint);

/// The same of tensors and optimizer states that a format's reader has named.
void tell_attention_kinds(const Arguments& arguments, Catalog& catalog);

/// The names alone, where `arguments` are those of such a model.
void tell_attention_kinds(const Arguments& arguments, std::span<TensorDesc> tensors);

}  // namespace shardwright
