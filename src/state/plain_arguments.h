// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "codec/pickle_value.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The names and values of a run's pickled arguments: those of a namespace, or of the dict that may
/// be in its place where Megatron-Core alone saves. No dict where there are none.
[[nodiscard]] pickle::Value argument_pairs(pickle::Value args);

/// Sets one of them. False, with nothing done, for what has no place for any: a list, None.
[[nodiscard]] bool set_argument(pickle::Document& document, pickle::Value args,
                                std::string_view name, pickle::Value value);

/// Those of a run's pickled arguments that are plain values; empty where there are none. A newer
/// run's hybrid_layer_pattern is also there as the hybrid_override_pattern of older ones, and that
/// of MTP layers. Source: megatron/training/arguments.py and checkpointing.py of 0.19. Error:
/// kLimit for more than any run has.
[[nodiscard]] Result<Arguments> plain_arguments(pickle::Value args);

/// A plain value as a node of `document`.
[[nodiscard]] pickle::Value make_plain_value(pickle::Document& document, const ArgValue& value);

}  // namespace shardwright
