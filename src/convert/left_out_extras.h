// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Takes what only Hugging Face stores out of the drafts of a target that has no place for it, and
/// tells that.
void leave_extras_out(Drafting& drafting);

/// Lists it beside what the model had at Hugging Face, so that an export knows what it can't have.
/// Error: kJsonCorrupt.
[[nodiscard]] Status list_left_out(Drafting& drafting);

}  // namespace shardwright
