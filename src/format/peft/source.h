// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source_format.h"

namespace shardwright {

/// An adapter in the files of PEFT, without its base model: its tensors have names of their own,
/// which are no model's.
[[nodiscard]] const SourceFormat& peft_source();

/// Whether a checkpoint is one.
[[nodiscard]] bool is_peft(const Checkpoint& checkpoint);

}  // namespace shardwright
