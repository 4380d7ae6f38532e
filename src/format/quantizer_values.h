// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/notes.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Takes the values of ModelOpt's quantizers out of a catalog, and notes that: nobody but ModelOpt
/// asks for them, and which ranks share them out is in its own state, which no conversion takes
/// along. Smoothing scales stay, see check_not_smoothed().
void leave_quantizer_values_out(Catalog& catalog, Notes& notes);

/// Refuses weights that are no model's without what multiplies their inputs. `catalog`: all that is
/// stored, because weights stay divided where their scales are left out. Errors:
/// kUnsupportedFormat, which names the first.
[[nodiscard]] Status check_not_smoothed(const Catalog& catalog);

}  // namespace shardwright
