// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/notes.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What two adapters multiply their products with, where it differs, each as a sentence: alpha,
/// and by which rule it is divided by the rank, as PEFT's adapter_config.json or the Megatron run
/// says it. None where either is no adapter, or says no alpha; that they can't be read is a note.
[[nodiscard]] std::vector<std::string> differing_adapter_settings(const Checkpoint& left,
                                                                  const Checkpoint& right,
                                                                  Notes& notes);

}  // namespace shardwright
