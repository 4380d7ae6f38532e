// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Fills in what a run of GPT-NeoX recorded, as Megatron's arguments. Its own few in the model
/// states come in `arguments`; the run's configuration lies in the folder `configs`, where what it
/// doesn't name has GPT-NeoX's default. Settings that Megatron-Core has none for are noted.
/// `use_parallel_residual` is GPT-NeoX's `gpt_j_residual`, as in Hugging Face's configuration.
/// Errors: those of reading. Sources: megatron/neox_arguments and megatron/checkpointing.py of
/// GPT-NeoX.
[[nodiscard]] Status take_neox_arguments(const Directory& directory, Arguments& arguments,
                                         std::vector<std::string>& notes);

}  // namespace shardwright
