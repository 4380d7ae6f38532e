// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/arguments.h"

namespace shardwright {

/// A run's arguments without those that Megatron-Core does not heed beside others: YaRN takes no
/// other scaling of positions, and turns all channels of a head. Sources: the constructor of
/// GPTModel (megatron/core/models/gpt/gpt_model.py), YarnRotaryEmbedding.
[[nodiscard]] Arguments heeded_arguments(Arguments args);

/// Whether a run with these arguments turns all channels although rotary_percent says a part.
[[nodiscard]] bool turns_more_than_said(const Arguments& args);

}  // namespace shardwright
