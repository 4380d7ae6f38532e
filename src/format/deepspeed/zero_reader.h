// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Fills in the catalog of a folder that ZeRO saved: each trained parameter in the precision of the
/// optimizer, put together of the ranks' flat buffers; frozen parameters, buffers and what else the
/// model has as stored; Adam's moments as `optimizer.state.exp_avg.NAME`. Errors: kZeroLayout for
/// files that are missing, of different saves, or that contradict each other; those of reading.
[[nodiscard]] Status read_zero(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright
