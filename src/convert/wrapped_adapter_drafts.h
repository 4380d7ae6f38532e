// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Makes the adapter that a run has saved in its own files PEFT's: its tensors under the names of
/// adapter_model.safetensors, and adapter_config.json. REQUIRES: holds_adapter_alone() what is
/// wanted. Errors: kUsage for another target than Hugging Face's and for flags that change nothing
/// of an adapter; kDuplicateName; those of config_of_wrapped_adapter.
[[nodiscard]] Status draft_wrapped_adapter(Drafting& drafting);

}  // namespace shardwright
