// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// Before anything is drafted: whether a Hugging Face model that becomes one again has what its
/// family needs. Notes tell of tensors without a rule and of a family that is not known. Errors:
/// those of model_tensors and map_from_hf for what is missing or of another shape, unless losses
/// are accepted.
[[nodiscard]] Status check_copied_model(Drafting& drafting);

}  // namespace shardwright
