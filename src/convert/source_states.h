// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "convert/conversion_source.h"

namespace shardwright {

/// Reads the optimizer states that opening the source left in files of their own, where they are
/// wanted. Errors: those of read_states.
[[nodiscard]] Status read_optimizer(const ConvertRequest& request, ConversionSource& source,
                                    Notes& notes);

/// Gives states that lie in flat buffers the names of their tensors. Error: kOptimizerUnsupported
/// where nothing says what lies where, and the target has no place for buffers.
[[nodiscard]] Status undo_flat(const ConvertRequest& request, ConversionSource& source,
                               Notes& notes);

/// Whether the states that are converted are all there, and those of their weights. Errors:
/// kOptimizerUnsupported, kStateUnreadable; notes of them under --accept-loss.
[[nodiscard]] Status check_states(const ConvertRequest& request, const ConversionSource& source,
                                  Notes& notes);

}  // namespace shardwright
