// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/convert_request.h"

namespace shardwright {

/// Each is some views of each layer.
inline constexpr std::int64_t kMostExperts = 4096;

/// `experts=N[,granularity=N,topk=N,pre_softmax=true|false,seed=N]`. Error: kUsage, which says what
/// is wrong with it.
[[nodiscard]] Result<Upcycling> parse_upcycling(std::string_view text);

}  // namespace shardwright
