// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The tensors of adapters in a model that PEFT wrapped for training and that was saved with them:
/// `X.lora_A.default.weight` beside `X.base_layer.weight`, modules trained whole, rows of an
/// embedding. Empty where no module is wrapped.
[[nodiscard]] std::vector<std::string> adapters_of_wrapped(const Catalog& catalog);

/// The flags of 'convert' that leave them out: `--exclude '*.lora_*'`.
[[nodiscard]] std::string flags_without(const std::vector<std::string>& adapters);

/// Takes them out of the catalog: what is left is the base model.
std::vector<StoredTensor> take_adapters_of_wrapped(Catalog& catalog);

/// The command that makes the trained model of such a checkpoint; `ADAPTER` stands for the folder
/// of PEFT's files where none lies beside it.
[[nodiscard]] std::string merge_command_of_wrapped(const Checkpoint& checkpoint);

}  // namespace shardwright
