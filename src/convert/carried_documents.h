// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/target_parts.h"
#include "layout/component.h"

namespace shardwright {

/// Makes what goes along with a Megatron target's tensors say what these are: config.json under
/// hf/ (type, quantisation) and Megatron-Bridge's run_config.yaml (sizes of the model or of its
/// `components`, type, what the checkpoint holds). What can't be edited is left
/// out rather than carried untrue. Each change is told. REQUIRES: `parts` are complete, but not yet
/// those of an fsdp_dtensor target. Errors: those of reading the documents.
[[nodiscard]] Status mend_documents(const ConvertRequest& request, const Checkpoint& source,
                                    std::span<const Component> components, TargetParts& parts,
                                    std::vector<std::string>& notes);

}  // namespace shardwright
