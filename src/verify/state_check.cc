// SPDX-License-Identifier: Apache-2.0
#include "verify/state_check.h"

#include "compare/recorded_optimizer.h"
#include "compare/stored_states.h"
#include "plan/wrong_states.h"
#include "state/lost_settings.h"
#include "verify/findings.h"

namespace shardwright {

namespace {

void tell_states(const StateFindings& found, VerifyReport& report) {
  for (const WrongState& state : found.wrong) {
    add_finding(report, Code::kOptimizerUnsupported, state.tensor, state.what);
  }
  if (std::string note = note_on_frozen(found); !note.empty()) {
    report.notes.push_back(std::move(note));
  }
}

}  // namespace

void check_named_states(const Catalog& named, const Checkpoint& checkpoint, VerifyReport& report) {
  tell_states(find_wrong_states(named, recorded_optimizer(checkpoint)), report);
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

Status check_trainer_states(const Checkpoint& checkpoint, VerifyReport& report) {
  tell_states(SW_TRY(find_wrong_stored_states(checkpoint, checkpoint.catalog)), report);
  return {};
}

}  // namespace shardwright
