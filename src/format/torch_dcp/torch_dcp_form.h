// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/model_form.h"

namespace shardwright {

/// torch_dcp's: that of fsdp_dtensor once its entries have the names that those have there.
[[nodiscard]] const ModelForm& torch_dcp_form();

}  // namespace shardwright
