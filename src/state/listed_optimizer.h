// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/error.h"

namespace shardwright {

/// A common state whose optimizer is the only one of a list, as NeMo 2 stores it (`optimizer`, or
/// `optimizer_states`), as Megatron-LM has it: `optimizer` is that one. Other states stay as they
/// are. Errors: those of StateDocument::read and StateDocument::encode.
[[nodiscard]] Result<std::string> without_optimizer_list(std::string common_state);

}  // namespace shardwright
