// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Takes the config.json that mcore_adapter (of ROLL and LLaMA-Factory) keeps in the run's
/// mca_config.json, and what describes the model beside that, where the checkpoint has no config
/// of its own; a note says so, and of one that can't be read. Its torch_dist lies one folder
/// deeper, in `dist_model`. Errors: those of listing the run's folder. Source:
/// models/model_config.py of mcore_adapter.
[[nodiscard]] Status read_mca_config(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright
