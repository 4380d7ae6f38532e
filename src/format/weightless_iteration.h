// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/sibling.h"

namespace shardwright {

/// ms-swift's Megatron leaves only common.pt in `checkpoint-N/iter_N` where it saves safetensors:
/// in `checkpoint-N`, or, merged, in `checkpoint-N-merged`.
inline constexpr std::string_view kMergedEnd = "-merged";

[[nodiscard]] bool is_weightless_iteration(const Sibling& sibling);

/// The two folders that may hold the weights of such an iteration.
struct PlacesOfWeights {
  std::string save;                       ///< `checkpoint-N`, which the iteration lies in
  std::string merged;                     ///< `checkpoint-N-merged`
  std::optional<std::string> found = {};  ///< that which has them
};

[[nodiscard]] PlacesOfWeights places_of_weights(const std::string& iteration);

/// The error for it, which names the folder to give. Errors: kUnsupportedFormat, kNothingStored
/// where there is none.
[[nodiscard]] std::unexpected<Error> refuse_weightless(const std::string& iteration,
                                                       std::string_view entry);

}  // namespace shardwright
