// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "shardwright/convert_request.h"
#include "shardwright/parts.h"

namespace CLI {
class App;
}

namespace shardwright::cli {

/// The arguments of `plan` and `convert`.
void add_conversion(CLI::App& app, ConvertRequest& request);

/// Those of `merge-adapter`: an adapter besides, and `hf` where no target is given.
void add_adapter_merge(CLI::App& app, ConvertRequest& request);

/// What `average` is given as text.
struct AverageArguments {
  std::vector<std::string> paths;  ///< the checkpoints, then the output
  std::string weights;
};

/// Those of `average`: checkpoints and an output, and `hf` where no target is given.
void add_average(CLI::App& app, ConvertRequest& request, AverageArguments& average);

/// Once all are read. Error: kUsage for fewer than two checkpoints, or weights that are no numbers.
[[nodiscard]] Status finish_average(const CLI::App& app, AverageArguments& average,
                                    ConvertRequest& request);

/// `--plan` and `--part`: a part of a saved plan is done. IN, OUT and --to need not be given then.
void add_part(CLI::App& app, std::string& plan, Part& part);

/// What describes a conversion is in the plan and is refused beside it. Error: kUsage. REQUIRES:
/// --plan is given.
[[nodiscard]] Status refuse_beside_plan(const CLI::App& app);

/// Once all are read: completes what follows from each other, and refuses what contradicts each
/// other or means nothing for the target. Error: kUsage.
[[nodiscard]] Status finish_conversion(const CLI::App& app, ConvertRequest& request);

}  // namespace shardwright::cli
