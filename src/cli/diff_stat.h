// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shardwright/verify.h"

namespace shardwright::cli {

/// What `diff --stat` prints: a line for each layer and for each component outside of layers in
/// which something differs, with tensors, elements, the largest difference and a bar of how many of
/// all differing elements lie there.
[[nodiscard]] std::string diff_stat_text(const DiffReport& report);

}  // namespace shardwright::cli
