// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/drafting.h"

namespace shardwright {

/// A conversion as far as its drafts: what each tensor of the target is made of and what goes
/// along, before anything is laid out in files. Errors: those of prepare_conversion().
[[nodiscard]] Result<Drafting> draft_conversion(const ConvertRequest& request);

}  // namespace shardwright
