// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/notes.h"
#include "format/target_parts.h"
#include "model/adapter_tensors.h"
#include "model/model_part.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Makes what becomes of a Megatron run's low-rank adapters a folder of PEFT's: the tensors' file
/// and adapter_config.json, whose ranks are those of the tensors; alpha and kind are those of the
/// run's `peft` section in run_config.yaml, or of its arguments. Errors: kConfigMissing where
/// nothing tells alpha; kShapeMismatch where another rank is told than the tensors have;
/// kUnsupportedFormat for a kind of adapter that PEFT's LoRA is not. Where the model has
/// `model_parts`, tensors get the names of its modules, which are what PEFT looks for.
[[nodiscard]] Status add_adapter_documents(const Checkpoint& source, const AdapterRanks& ranks,
                                           std::span<const ModelPart> model_parts,
                                           TargetParts& parts, Notes& notes);

}  // namespace shardwright
