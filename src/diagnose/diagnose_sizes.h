// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/diagnose.h"

namespace shardwright {

/// Adds to the evidence that the model can't be cut for the sizes that the caller gives, with the
/// reason, where that is so: its heads, rows or layers do not divide. `as`: the format's name.
/// Reads no tensor.
void add_impossible_sizes(const std::string& path, const std::string& as, const AxisSizes& believed,
                          Diagnosis& diagnosis);

}  // namespace shardwright
