// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// An adapter in PEFT's files as a Megatron run has one. Errors: kUsage for another target than
/// torch_dist; kUnsupportedFormat for what Megatron's adapters have no place for; those of
/// open_peft_adapter, of finding the family and of its mapping.
[[nodiscard]] Status draft_peft_as_megatron(Drafting& drafting);

/// Whether names for an adapter are asked of what is none. Error: kUsage.
[[nodiscard]] Status check_adapter_names(const Drafting& drafting);

}  // namespace shardwright
