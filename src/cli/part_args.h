// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/args.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

// The arguments of the commands that put a model's parts together and take it apart.

void add_merge(CLI::App& app, MergeCommand& command);
void add_split(CLI::App& app, SplitCommand& command);

}  // namespace shardwright::cli
