// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Weights that get another dtype beside their master weights are made of these, as the next step
/// of a training run would make them: what the old dtype had rounded off would part the two for
/// good. Does nothing without `--dtype` and to weights without one.
void cast_masters(Drafting& drafting);

}  // namespace shardwright
