// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardwright {

/// The candidate that differs from `name` by the fewest edits, or "" when none is close enough to
/// be meant. Looks at no more than a thousand candidates.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       std::span<const std::string> candidates);

}  // namespace shardwright
