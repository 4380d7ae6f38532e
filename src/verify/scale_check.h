// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/quantisation.h"
#include "shardwright/checkpoint.h"
#include "shardwright/verify.h"

namespace shardwright {

/// Reads the scales of a quantised model and tells of those that are NaN: a conversion would refuse
/// them when it comes to their weights. `model` counts the tensors of `catalog`, whose payloads lie
/// in the checkpoint's files.
void check_scales(const Checkpoint& checkpoint, const Catalog& catalog, const ModelTensors& model,
                  VerifyReport& report);

}  // namespace shardwright
