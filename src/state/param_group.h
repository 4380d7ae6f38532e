// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/pickle_value.h"
#include "layout/optimizer_groups.h"
#include "shardwright/error.h"

namespace shardwright {

/// What a group of an optimizer's state dict says of itself. NeMo's spellings are known too.
[[nodiscard]] OptimizerGroup read_param_group(pickle::Value group);

[[nodiscard]] std::vector<OptimizerGroup> read_param_groups(std::span<const pickle::Value> groups);

/// What a run's arguments say of its groups (`args` of a common state, which may be nothing) and,
/// where it hangs on the version, the groups themselves.
[[nodiscard]] GroupRule read_group_rule(pickle::Value args, std::span<const pickle::Value> groups);

/// Whether each parameter of a group has a step of its own, as torch's own Adam keeps it; the fused
/// ones of Transformer Engine and Apex keep one in each group and take no other. torch's SGD counts
/// none.
[[nodiscard]] bool has_own_steps(pickle::Value group);

/// How many steps a group's parameters have made; nothing where it says none. Megatron-Core 0.15
/// counts them in whole floats.
[[nodiscard]] std::optional<std::int64_t> step_of_group(pickle::Value group);

/// The groups of one optimizer: of `{optimizer: {param_groups: [...]}}`, of an FP32Optimizer, which
/// is torch's own dict, `{param_groups: [...]}`. None where it has none.
[[nodiscard]] std::vector<pickle::Value> param_groups_of(pickle::Value part);

/// What tells groups with other settings apart: all that a group says but for the keys `but`, as
/// bytes. Errors: those of pickle::encode.
[[nodiscard]] Result<std::string> settings_of_group(const pickle::Document& document,
                                                    pickle::Value group,
                                                    std::initializer_list<std::string_view> but);

}  // namespace shardwright
