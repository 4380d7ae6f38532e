// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Halves of master weights (MasterForm::kRemainders) become whole ones, unless the target keeps
/// the source's names; a note says so. Errors: those of join_masters in canonical.
[[nodiscard]] Status join_masters(Drafting& drafting);

/// Weights that get another dtype beside their master weights are made of these, as the next step
/// of a training run would make them: what the old dtype had rounded off would part the two for
/// good. Does nothing without `--dtype` and to weights without one.
void cast_masters(Drafting& drafting);

}  // namespace shardwright
