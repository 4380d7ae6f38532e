// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/pickle_value.h"

namespace shardwright {

/// A plain value of one document (numbers, text, lists, tuples, dicts, and names of classes, which
/// optimizers with parts on the CPU have in their settings) made again in another.
/// Errors: kStateUnreadable for anything else, kLimit for one that is nested too deep.
[[nodiscard]] Result<pickle::Value> copy_plain_value(pickle::Document& document,
                                                     pickle::Value value);

}  // namespace shardwright
