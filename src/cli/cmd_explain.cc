// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace shardwright::cli {

Result<int> run_explain(const ExplainCommand& command, Console& console) {
  console.print(SW_TRY(code_page(command.code, command.language)));
  return kExitFine;
}

}  // namespace shardwright::cli
