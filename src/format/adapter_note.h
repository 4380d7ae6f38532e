// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// What a user should know of a checkpoint that holds low-rank adapters, alone or beside the
/// weights that they belong to, and the command that makes something of it; nullopt for others.
[[nodiscard]] std::optional<std::string> adapter_note(const Checkpoint& checkpoint);

/// Modules of its layers that lack an adapter which most layers have, as a sentence; empty where
/// there are none, and for adapters in PEFT's files, which are held against their base.
[[nodiscard]] std::string note_on_adapter_gaps(const Checkpoint& checkpoint);

}  // namespace shardwright
