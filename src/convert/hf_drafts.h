// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// The tensors of a Hugging Face model, and what goes along, as a target with Hugging Face's names
/// calls them. Errors: those of finding the family and of its mapping.
[[nodiscard]] Status draft_hf_as_hf(Drafting& drafting);

/// The same as a target with Megatron's names calls them.
[[nodiscard]] Status draft_hf_as_megatron(Drafting& drafting);

}  // namespace shardwright
