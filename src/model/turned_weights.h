// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/mapping_file.h"

namespace shardwright {

/// Whether Hugging Face's files hold a weight as [inputs, outputs], as GPT-2's Conv1D has it: what
/// the family's rule for that name says. The name may lack leading parts, or have more of them.
/// nullopt without a rule.
[[nodiscard]] std::optional<bool> is_stored_turned(std::span<const Item> items,
                                                   std::string_view weight);

}  // namespace shardwright
