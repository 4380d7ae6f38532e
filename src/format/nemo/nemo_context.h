// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Takes along what NeMo 2 keeps in `context` beside the folder of weights: model.yaml says what
/// the model is, where the run's own state does not, and which adapters it got; the tokenizer's
/// files belong to the Hugging Face model. Without such a folder nothing is taken, and a note says
/// so. Errors: kYamlCorrupt, those of reading.
[[nodiscard]] Status read_nemo_context(Checkpoint& checkpoint, Defects& defects);

}  // namespace shardwright
