// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/model_form.h"

namespace shardwright {

/// DeepSpeed's with ZeRO: weights in float32 in the optimizer's files, or in a folder for each
/// parameter, and as the model computed with them in `*_model_states.pt`, which is whole but under
/// ZeRO 3.
[[nodiscard]] const ModelForm& zero_form();

}  // namespace shardwright
