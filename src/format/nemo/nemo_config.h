// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// What NeMo 1's model_config.yaml says, as Megatron's arguments: sizes keep their names, settings
/// that NeMo spells otherwise (`activation: fast-swiglu`, `normalization: rmsnorm`, `bias`) get
/// Megatron's. Errors: kYamlCorrupt; kUnsupportedFormat for what Megatron-Core has no argument for.
[[nodiscard]] Result<Arguments> arguments_of_nemo(std::string_view yaml);

/// NeMo asks the tokenizer how large the vocabulary is and records nothing: what is stored tells
/// its rows, padding included. Nothing where the arguments have it, or there is no embedding.
void take_vocabulary(const Catalog& catalog, Arguments& arguments);

}  // namespace shardwright
