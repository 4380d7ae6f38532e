// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

// By how much YaRN multiplies what it turns. transformers heeds mscale and mscale_all_dim only
// where neither is 0, and attention_factor before them; Megatron-Core heeds both wherever both are
// set, and has no attention_factor. Sources: _compute_yarn_parameters in transformers'
// modeling_rope_utils.py, _yarn_get_concentration_factor in Megatron-Core's
// yarn_rotary_pos_embedding.py.

/// The settings of a config.json (`rope.*` in the mapping's section) with the mscale and
/// mscale_all_dim with which Megatron-Core multiplies by as much. Those that say it already, and
/// those that no mscale says, stay as they are.
[[nodiscard]] Arguments with_megatron_magnitude(const Mapping& mapping, Arguments hf);

/// The way back: adds an attention_factor where transformers would multiply otherwise without.
void add_attention_factor(const Mapping& mapping, Arguments& hf);

}  // namespace shardwright
