// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>

#include "model/mapping_file.h"

namespace shardwright {

/// What a family's rules call tensors that are there under one of the rules' other names, by that.
using FirstNames = std::map<std::string, std::string, std::less<>>;

/// `canonical` has one tensor per layer under the names of any spec of modules. Empty where they
/// don't make a whole model of the family: then nothing says which of its rules apply. Errors:
/// those of selecting rules and of evaluating sizes.
[[nodiscard]] Result<FirstNames> first_names(const Mapping& mapping, const ModelSizes& sizes,
                                             std::span<const TensorDesc> canonical);

}  // namespace shardwright
