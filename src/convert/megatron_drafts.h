// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// The tensors of a Megatron checkpoint, and what goes along, as a target with Hugging Face's names
/// calls them. Errors: kNoFamily for names that are not Megatron's, those of finding the family and
/// of its mapping.
[[nodiscard]] Status draft_megatron_as_hf(Drafting& drafting);

/// The same as a target with Megatron's names calls them.
[[nodiscard]] Status draft_megatron_as_megatron(Drafting& drafting);

/// What both sources' tensors get for a Megatron target: extra values of Hugging Face leave a
/// target that has no place for them; sizes and names are settled.
void finish_megatron_drafts(Drafting& drafting);

}  // namespace shardwright
