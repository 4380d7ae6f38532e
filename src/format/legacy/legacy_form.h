// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/model_form.h"

namespace shardwright {

/// That of ranks' files: an ordinary model's, once it is put together, but for the optimizer, whose
/// pickles are large and read only where they are wanted.
[[nodiscard]] const ModelForm& legacy_form();

}  // namespace shardwright
