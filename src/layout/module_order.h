// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// Whether a tensor of a rank's state dict is a parameter that an optimizer trains, not a buffer
/// beside them (`mlp.router.expert_bias`, counters).
[[nodiscard]] bool is_parameter(std::string_view name, DType dtype);

/// The indices of `names`, a rank's own, in the order in which torch lists the parameters of such a
/// model: a module's own parameters before those of the modules in it, modules in the order in
/// which Megatron's constructors make them. Modules of which no rule is known stand behind the
/// others, in the order in which they come. Source: the constructors of
/// megatron/core/{models,transformer,ssm}, torch's named_parameters.
[[nodiscard]] std::vector<std::size_t> in_module_order(std::span<const std::string> names);

/// An error where the order is a guess: kOptimizerUnsupported with a module or a parameter that has
/// neighbours and of which no rule is known. Ask before numbering parameters.
[[nodiscard]] Status check_module_order(std::span<const std::string> names);

}  // namespace shardwright
