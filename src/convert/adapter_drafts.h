// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Opens the adapter of the request, finds what it changes and puts its whole tensors in their
/// places. Errors: those of open_peft_adapter and match_adapter; kUsage for a base without Hugging
/// Face's names; kConfigMissing; kUnsupportedFormat for a base that bitsandbytes quantised.
[[nodiscard]] Status take_adapter(Drafting& drafting);

/// Once there are drafts: what is added to which source tensor. Error: kDtypeUnsupported naming a
/// tensor that nothing can be added to; those of set_dora_factors.
[[nodiscard]] Status add_adapter(Drafting& drafting);

}  // namespace shardwright
