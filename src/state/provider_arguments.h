// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/checkpoint.h"

namespace shardwright {

/// Configurations are also dumped from Megatron-Core's classes (the providers of Megatron-Bridge,
/// the configs of NeMo 2), which call some settings otherwise than Megatron-LM's arguments. Adds
/// the arguments that such settings are; one that is there already stays as it is. Sources:
/// megatron/bridge/models/gpt_provider.py, nemo/collections/llm/gpt/model/llama.py.
void add_arguments_of_provider(Arguments& settings);

}  // namespace shardwright
