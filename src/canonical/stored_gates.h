// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>

#include "model/interleaved_gates.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// How a Megatron checkpoint has the gates of experts. Megatron-LM's arguments say it of all that
/// is stored. Of a run of Megatron-Bridge run_config.yaml says it of what Bridge leaves as it is:
/// the weights that it saves have the gate first. Error: kConfigMissing for a size that is no
/// positive number.
[[nodiscard]] Result<StoredGates> stored_gates(const Checkpoint& source);

/// Whether the run had gates in blocks that its weights are stored without.
[[nodiscard]] inline bool has_blocks_in_run_only(const StoredGates& gates) {
  return gates.weights != gates.states;
}

/// Adapters whose rows would have to be moved.
[[nodiscard]] std::unexpected<Error> refuse_adapters_of_blocks();

}  // namespace shardwright
