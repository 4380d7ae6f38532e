// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/model_form.h"

namespace shardwright {

/// Megatron-FSDP's: the modules' own tensors and halves of them, the training state entry by entry.
[[nodiscard]] const ModelForm& fsdp_form();

/// What entries under its names show of a model.
[[nodiscard]] ModelOutline outline_of_fsdp(const Catalog& catalog, const Arguments& arguments);

}  // namespace shardwright
