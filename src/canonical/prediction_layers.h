// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// The HF tensors that only such layers are made of, and the copies that HF stores beside them
/// (DeepSeek's second embedding).
[[nodiscard]] std::vector<std::string> prediction_tensors(const Correspondence& correspondence);

/// Takes tensors out of a catalog by name.
void erase_tensors(const std::vector<std::string>& names, Catalog& catalog);

/// Takes such layers' tensors and other entries out of a Megatron catalog; the tensors' names.
std::vector<std::string> erase_prediction_layers(Catalog& catalog);

/// `15 tensors of prediction layers are dropped: mtp.fc.weight, ...`, all of them.
[[nodiscard]] std::string dropped_note(const std::vector<std::string>& names);

}  // namespace shardwright
