// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/pickle_value.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The attributes of a pickled namespace that are plain values; empty for anything else.
[[nodiscard]] Arguments plain_arguments(pickle::Value args);

/// A plain value as a node of `document`.
[[nodiscard]] pickle::Value make_plain_value(pickle::Document& document, const ArgValue& value);

}  // namespace shardwright
