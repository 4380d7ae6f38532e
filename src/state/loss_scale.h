// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// What to say where the scaler of an fp16 run's gradients is left behind.
inline constexpr std::string_view kLossScaleNote =
    "the loss scale is not carried: a run begins with its initial one (--initial-loss-scale)";

}  // namespace shardwright
