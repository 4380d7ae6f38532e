// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/argument_check.h"
#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// What the contents of an opened checkpoint say against it, whatever its layout, as findings with
/// the numbers of errors: nothing is stored (SW0320), some is stored twice (SW0308: `doubled` says
/// what), parts of the model or common.pt are missing (SW0413, SW0312), its arguments or
/// config.json contradict its tensors (SW0414), torch cannot load it (SW0321, a warning). Heads of
/// uneven shards are read.
void add_contents(const Checkpoint& checkpoint, std::span<const std::string> doubled,
                  Diagnosis& diagnosis);

/// What came of holding a run's arguments, or a config.json, against the tensors: contradictions as
/// findings (SW0414), and as evidence why it could not be done.
void add_contradictions(const Result<ArgumentCheck>& check, Diagnosis& diagnosis);

}  // namespace shardwright
