// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Rows of experts' gates that lie in blocks go where the ranks of a Megatron target have them: its
/// arguments, which are written already, and its sizes say where. Errors: those of stored_gates and
/// move_gates; kUnmatchedSource for adapters, kOptimizerUnsupported for states of Megatron-Bridge
/// whose rows would have to be moved.
[[nodiscard]] Status move_gates_to_target(Drafting& drafting);

}  // namespace shardwright
