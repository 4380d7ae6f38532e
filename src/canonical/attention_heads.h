// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "plan/draft.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Over how many tensor ranks a tensor's part of the model is shared out.
using TensorRanksOf = std::function<std::int64_t(std::string_view name)>;

/// Megatron shares out attention by whole heads, of a vision tower too: rows alone would let ranks
/// have halves of heads. `arguments` tell how many heads there are; what they don't tell is not
/// checked. Error: kNotDivisible with the first such tensor.
[[nodiscard]] Status check_attention_heads(std::span<const DraftTensor> tensors,
                                           const Arguments& arguments, const TensorRanksOf& ranks);

}  // namespace shardwright
