// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codec/pickle_value.h"
#include "shardwright/error.h"

namespace shardwright {

/// Makes the `optimizer` of a common state that of a layout whose experts are sharded apart, or are
/// not; whether it changed. Megatron-Core writes one optimizer's dict as it is, and those of a
/// chain under 0, 1, …: experts that are sharded apart have an optimizer of their own behind the
/// one of the same kind, and Muon or Lion have Adam behind them for what is no matrix. Its own
/// loader can't go from one chain to another. Optimizers that share out whole layers have no part
/// of experts. Errors: those of pickle::encode. Source: get_megatron_optimizer and
/// _get_megatron_emerging_optimizer in megatron/core/optimizer/__init__.py.
[[nodiscard]] Result<bool> regroup_optimizer(pickle::Document& document, pickle::Value state,
                                             bool experts_apart, std::vector<std::string>& notes);

}  // namespace shardwright
