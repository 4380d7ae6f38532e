// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/conversion_source.h"

namespace shardwright {

/// Finds out how the source's master weights go with its weights, and whether they have to prove
/// whose the states are. Errors: those of reading.
[[nodiscard]] Status find_master_form(const ConvertRequest& request, ConversionSource& source,
                                      Notes& notes);

/// Notes what is proven before anything is written, what can't be, and how much is read for it.
[[nodiscard]] Status tell_proof(ConversionSource& source, Notes& notes);

}  // namespace shardwright
