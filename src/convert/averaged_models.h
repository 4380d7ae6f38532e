// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "convert/drafting.h"

namespace shardwright {

/// Tensors of the same shapes may be of models that compute otherwise: another number of heads,
/// another base of the rotary embedding. Compares what config.json or the training arguments say of
/// two models that are averaged; of what no family's rules read, and of what only training needs, a
/// note tells. `path` is what the user calls the other one. Error: kConfigMissing, naming what
/// differs.
[[nodiscard]] Status check_one_model(Drafting& first, const std::string& path,
                                     const Checkpoint& other);

}  // namespace shardwright
