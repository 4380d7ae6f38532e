// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "shardwright/plan.h"

namespace shardwright {

/// A place in a plan's source: file, offset.
using SourcePlace = std::pair<std::uint32_t, std::uint64_t>;

/// Where a target tensor's first bytes come from; behind everything for one that reads nothing.
[[nodiscard]] SourcePlace first_place(const Plan& plan, std::size_t tensor);

}  // namespace shardwright
