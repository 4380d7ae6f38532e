// SPDX-License-Identifier: Apache-2.0
#include "verify/state_check.h"

#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/fsdp_dtensor/fsdp_steps.h"
#include "plan/wrong_states.h"
#include "state/lost_settings.h"
#include "state/recorded_run.h"
#include "verify/findings.h"

namespace shardwright {

void check_named_states(const Catalog& named, const Checkpoint& checkpoint, VerifyReport& report) {
  const StateFindings found = find_wrong_states(named, named_optimizer(checkpoint.arguments));
  for (const WrongState& state : found.wrong) {
    add_finding(report, Code::kOptimizerUnsupported, state.tensor, state.what);
  }
  if (std::string note = note_on_frozen(found); !note.empty()) {
    report.notes.push_back(std::move(note));
  }
  if (!checkpoint.location.traits.needs_common_state) return;
  const auto lost = find_lost_settings(checkpoint, named);
  if (!lost) return;  // reported when it was opened
  if (!lost->groups.empty()) {
    add_finding(report, Code::kStateUnreadable, "common.pt", lost->groups);
  }
  if (!lost->states.empty()) {
    add_finding(report, Code::kOptimizerUnsupported, "common.pt", lost->states);
  }
  for (const std::string& what : lost->others) {
    add_finding(report, Code::kStateUnreadable, "common.pt", what, Severity::kWarning);
  }
}

void check_fsdp_state(const Checkpoint& checkpoint, VerifyReport& report) {
  const Status settings = check_fsdp_settings(checkpoint.catalog);
  if (!settings) add_finding(report, settings.error());
  const auto steps = read_fsdp_steps(checkpoint.catalog, *checkpoint.files);
  // What can't be read at all was told.
  if (!steps && steps.error().code == Code::kStateUnreadable) add_finding(report, steps.error());
}

}  // namespace shardwright
