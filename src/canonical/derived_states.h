// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Optimizer states of which only Megatron's rules tell whose they are: those in files of ranks,
/// and those in flat buffers. Rules may be wrong: whoever gives states names proves them by
/// comparing each master weight with its weight.

/// Whether a checkpoint has optimizer states in any form.
[[nodiscard]] bool has_states(const Checkpoint& checkpoint);

/// Whether optimizer states in a catalog of this checkpoint have no tensors' names yet: those in
/// flat buffers.
[[nodiscard]] bool has_unnamed_states(const Checkpoint& checkpoint, const Catalog& catalog);

/// Reads the states that lie in files of ranks into the catalog, under their tensors' names; false
/// where there are none. Errors: as ModelForm::read_states.
[[nodiscard]] Result<bool> read_states(Checkpoint& checkpoint, Defects& defects);

/// Gives states in flat buffers the names and the shapes of their tensors in `wanted`, a catalog of
/// this checkpoint; false where there are none. REQUIRES: payloads are located; the components of a
/// MIMO model have no such states. Errors: as undo_flat_states; `wanted` is of no use then.
[[nodiscard]] Result<bool> name_states(Checkpoint& checkpoint, Catalog& wanted);

}  // namespace shardwright
