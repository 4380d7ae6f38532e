// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// Files of a checkpoint without which no reader takes the others for one: where files cannot all
/// appear at once, these do last, in this order. 0: none of them; others by their numbers, for a
/// later one lies around or behind those before it, or names them.
[[nodiscard]] int seal_number(std::string_view path);

}  // namespace shardwright
