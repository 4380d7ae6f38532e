// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "convert/drafting.h"
#include "convert/taken_adapter.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// The head of a classifier that the adapter has and the base lacks comes in the output layer's
/// place; config.json, which `config` is or which was given besides, becomes that of such a model.
/// `model`: the base's tensors. Errors: kUnmatchedSource and kShapeMismatch for a head that cannot
/// be the base's; kUsage for an --hf-config of a model without it; those of classifier_config.
/// REQUIRES: there is one.
[[nodiscard]] Status give_head_of_adapter(const TakenAdapter& taken,
                                          std::span<const TensorDesc> model,
                                          const std::string& config, Drafting& drafting);

}  // namespace shardwright
