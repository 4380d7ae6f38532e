// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// What there is to say about a MIMO checkpoint's components: their tensors by name, their sizes
/// from components.json, else from Megatron-Bridge's run_config.yaml. A component of the run that
/// has no tensors makes it incomplete; a table that is not the checkpoint's is a finding (L50).
void add_components(const Checkpoint& checkpoint, Diagnosis& diagnosis);

}  // namespace shardwright
