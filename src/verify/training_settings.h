// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "verify/view.h"

namespace shardwright {

/// Which settings of training two checkpoints say differently, each as a sentence: those of the
/// optimizer's parameter groups and of the scheduler, and of plain DCP checkpoints the values of
/// entries that both have. What one side does not say differs from nothing: layouts and formats
/// say more or less of them. Errors: kStateUnreadable, those of reading.
[[nodiscard]] Result<std::vector<std::string>> differing_training_settings(const View& left,
                                                                           const View& right);

}  // namespace shardwright
