// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string_view>

#include "model/arguments.h"
#include "model/mapping_file.h"
#include "shardwright/error.h"

namespace shardwright {

/// A training run may compute what no config.json of the family can say, with tensors that look the
/// same: capped logits, another gate, a norm around its one. Error: kConfigMissing, naming the
/// argument and its value, where an argument that changes what is computed is set and the family
/// reads no such argument, or has another value for it. Sources: megatron/training/arguments.py,
/// megatron/core/transformer/transformer_config.py.
[[nodiscard]] Status check_unsaid_arguments(const Mapping& mapping, const Arguments& args);

/// kConfigMissing: this value has no place in the family's config.json.
[[nodiscard]] std::unexpected<Error> unsaid_argument(std::string_view name, const ArgValue& value,
                                                     std::string_view family);

}  // namespace shardwright
