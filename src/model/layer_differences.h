// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/arguments.h"
#include "model/mapping_file.h"

namespace shardwright {

/// What Megatron-Core's attention and Mamba mixers compute otherwise than the layers of a
/// config.json, although the arguments say what they can: sentences without full stop, for notes
/// of either direction. `hf`: the config's values in the mapping's section. Pure. Source:
/// MambaMixer in megatron/core/ssm/mamba_mixer.py.
[[nodiscard]] std::vector<std::string> layer_differences(const Mapping& mapping,
                                                         const Arguments& hf,
                                                         const Arguments& args);

}  // namespace shardwright
