// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The tensors of adapters in a model that PEFT wrapped for training and that was saved with them:
/// `X.lora_A.default.weight` beside `X.base_layer.weight`, modules trained whole, rows of an
/// embedding. Empty where no module is wrapped.
[[nodiscard]] std::vector<std::string> adapters_of_wrapped(const Catalog& catalog);

/// What 'convert' leaves them out with, or takes them alone: `--exclude '*.lora_*'`.
[[nodiscard]] std::string flags_of_wrapped(std::string_view flag,
                                           const std::vector<std::string>& adapters);

/// Takes them out of the catalog: what is left is the base model.
std::vector<StoredTensor> take_adapters_of_wrapped(Catalog& catalog);

/// The command that makes the trained model of such a checkpoint; `ADAPTER` stands for the folder
/// of PEFT's files where none lies beside it.
[[nodiscard]] std::string merge_command_of_wrapped(const Checkpoint& checkpoint);

}  // namespace shardwright
