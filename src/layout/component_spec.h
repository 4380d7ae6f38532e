// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"
#include "shardwright/parallel.h"

namespace shardwright {

/// Reads `name=key=int[,key=int…]` with the keys tp, pp, dp, cp, ep, etp and rank_offset. Spaces
/// around words and empty tokens don't count, the last of equal keys wins, integers may have a sign
/// and underscores (`+2`, `1_0`). Error: kUsage; the caller names the flag. Source: the reference's
/// parser in examples/conversion/convert_megatron_mimo.py.
[[nodiscard]] Result<ComponentSpec> parse_component(std::string_view text);

/// Several of them, each with a name of its own. Error: kUsage.
[[nodiscard]] Result<std::vector<ComponentSpec>> parse_components(
    std::span<const std::string> texts);

}  // namespace shardwright
