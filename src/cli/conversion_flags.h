// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/convert.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

/// The arguments of `plan` and `convert`.
void add_conversion(CLI::App& app, ConvertRequest& request);

/// Once all are read: completes what follows from each other, and refuses what contradicts each
/// other or means nothing for the target. Error: kUsage.
[[nodiscard]] Status finish_conversion(const CLI::App& app, ConvertRequest& request);

}  // namespace shardwright::cli
