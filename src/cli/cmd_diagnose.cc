// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/diagnosis_output.h"

namespace shardwright::cli {

Result<int> run(const DiagnoseCommand& command, Console& console) {
  const Diagnosis diagnosis = SW_TRY(diagnose(command.request));
  console.print(command.json ? diagnosis_json(diagnosis, console.language())
                             : diagnosis_text(diagnosis, console));
  return diagnosis.has_errors() ? kExitFindings : kExitFine;
}

}  // namespace shardwright::cli
