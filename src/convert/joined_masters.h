// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Master weights that are stored as what the weights lack of them become float32 numbers, as every
/// run but one with the same optimizer asks for. Does nothing for a target that keeps the source's
/// names. Errors: kUsage for a remainder whose weight is left out; kOptimizerMismatch for a tensor
/// that would be made of such and of whole ones.
[[nodiscard]] Status join_masters(Drafting& drafting);

}  // namespace shardwright
