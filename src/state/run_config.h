// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/checkpoint.h"

namespace shardwright {

/// The plain values of a section that is a model's configuration: `model:` of Megatron-Bridge's
/// run_config.yaml. Its `_target_` and other instructions to build objects are left alone. Error:
/// kYamlCorrupt, with `file` as what is wrong.
[[nodiscard]] Result<Arguments> read_model_section(std::string_view yaml,
                                                   const std::string& section,
                                                   std::string_view file);

/// That of Megatron-Bridge's run_config.yaml, with the arguments of Megatron-LM that its settings
/// are (add_arguments_of_provider).
[[nodiscard]] Result<Arguments> read_run_config(std::string_view yaml);

/// All plain values of a YAML map, nested ones by dotted name. Error: kYamlCorrupt.
[[nodiscard]] Result<Arguments> read_yaml_values(std::string_view yaml, std::string_view file);

}  // namespace shardwright
