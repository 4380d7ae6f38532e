// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/notes.h"
#include "format/target_parts.h"
#include "model/adapter_tensors.h"
#include "model/mapping_file.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether nothing is asked for that changes nothing of an adapter. Error: kUsage.
[[nodiscard]] Status check_changes_of_adapters(const ConvertRequest& request);

/// Makes what becomes of a Megatron run's low-rank adapters a folder of PEFT's: the tensors' file
/// and adapter_config.json, whose ranks are those of the tensors; alpha and kind are those of the
/// run's `peft` section in run_config.yaml, or of its arguments. Errors: kConfigMissing where
/// nothing tells alpha; kShapeMismatch where another rank is told than the tensors have;
/// kUnsupportedFormat for a kind of adapter that PEFT's LoRA is not. Tensors get the names of the
/// family's modules, which are what PEFT looks for; experts that have their adapters one by one
/// keep those of files, of which PEFT knows how to make others.
[[nodiscard]] Status add_adapter_documents(const Checkpoint& source, const AdapterRanks& ranks,
                                           const Mapping& family, TargetParts& parts, Notes& notes);

}  // namespace shardwright
