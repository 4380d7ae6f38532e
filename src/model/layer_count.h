// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/fail.h"

namespace shardwright {

/// kConfigMissing where the list called `name` has not one entry for each layer.
[[nodiscard]] inline Status check_layer_count(std::string_view name, std::size_t found,
                                              std::int64_t layers) {
  if (std::cmp_equal(found, layers)) return {};
  return fail(Code::kConfigMissing, "{}: found {} entries, expected {}, one per layer", name, found,
              layers);
}

}  // namespace shardwright
