// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "canonical/model_facts.h"

namespace shardwright {

/// run_config.yaml as Megatron-Bridge needs it to build the model of a checkpoint that was made
/// from Hugging Face: the provider's class and those of its fields that the model decides; the
/// class has defaults for the rest. Families whose provider takes more than Megatron's `arguments`
/// say get none: empty, and a note.
[[nodiscard]] Result<std::string> new_run_config(
    const ModelFacts& facts, std::span<const std::pair<std::string, ArgValue>> arguments,
    std::vector<std::string>& notes);

}  // namespace shardwright
