// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

/// What Megatron-Core computes otherwise than the model of a config.json although `args`, which
/// were made of it, say what they can: sentences without full stop, for notes. `values`: the
/// config's, with `rope.*`. Pure. Source: YarnRotaryEmbedding and
/// MultimodalRotaryEmbedding in megatron/core/models/common/embeddings,
/// megatron/core/transformer/mla_qk_norm_config.py; of routers and layers those of
/// routing_differences and layer_differences.
[[nodiscard]] std::vector<std::string> computed_otherwise(const Mapping& mapping,
                                                          const Arguments& values,
                                                          const Arguments& args);

/// What a run with these arguments computed otherwise than the model of the config.json that is
/// made of them, likewise. Pure.
[[nodiscard]] std::vector<std::string> run_computed_otherwise(const Mapping& mapping,
                                                              const Arguments& values,
                                                              const Arguments& args);

}  // namespace shardwright
