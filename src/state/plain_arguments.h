// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/pickle_value.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The attributes of a pickled namespace that are plain values; empty for anything else. A newer
/// run's hybrid_layer_pattern is also there as the hybrid_override_pattern of older ones, and that
/// of MTP layers. Source: megatron/training/arguments.py and checkpointing.py of 0.19. Error:
/// kLimit for more than any run has.
[[nodiscard]] Result<Arguments> plain_arguments(pickle::Value args);

/// A plain value as a node of `document`.
[[nodiscard]] pickle::Value make_plain_value(pickle::Document& document, const ArgValue& value);

}  // namespace shardwright
