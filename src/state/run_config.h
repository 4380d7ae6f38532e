// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// The plain values of the `model:` section of Megatron-Bridge's run_config.yaml. Its `_target_`
/// and other instructions to build objects are left alone. Error: kYamlCorrupt.
[[nodiscard]] Result<Arguments> read_run_config(std::string_view yaml);

}  // namespace shardwright
