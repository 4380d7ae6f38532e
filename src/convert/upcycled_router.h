// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "convert/drafting.h"

namespace shardwright {

/// The router of a module whose dense MLP, with `first` for its first linear's weight, becomes
/// experts as the request asks for: random numbers as large as `arguments` say. Experts that are
/// cut of one MLP have the same row: tokens that take one take all of them. Error:
/// kDtypeUnsupported.
[[nodiscard]] Result<DraftTensor> draft_router(Drafting& drafting, const Arguments& arguments,
                                               const std::string& module, const DraftTensor& first);

/// Its bias, which routers have where linears do; `first` is that linear's. Of zeros it chooses
/// nothing: random ones would tear apart the experts that are cut of one MLP.
[[nodiscard]] DraftTensor draft_router_bias(const std::string& module, const DraftTensor& first,
                                            const Upcycling& wanted);

}  // namespace shardwright
