// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "convert/drafting.h"

namespace shardwright {

/// The number of a new source tensor that is the same bytes as `source`, with what those are
/// multiplied with where they are quantised: what is said of one of them leaves the other as it is.
[[nodiscard]] std::uint32_t repeat_source(Drafting& drafting, std::uint32_t source);

/// The number of a new source tensor that lies row-major in `file`, which no checkpoint has.
[[nodiscard]] std::uint32_t add_made_source(Drafting& drafting, TensorDesc desc,
                                            std::unique_ptr<ReadableFile> file);

}  // namespace shardwright
