// SPDX-License-Identifier: Apache-2.0
#include "convert/source_states.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fail.h"
#include "canonical/derived_states.h"
#include "compare/recorded_optimizer.h"
#include "compare/stored_states.h"
#include "format/select.h"
#include "model/component_names.h"
#include "plan/canonical.h"
#include "plan/wrong_states.h"
#include "state/lost_settings.h"

namespace shardwright {
namespace {

std::unexpected<Error> refuse_flat_states(std::string_view path) {
  return fail(Code::kOptimizerUnsupported,
              "{}: found flat optimizer states in a MIMO model, expected states in the shapes of "
              "the model's tensors; convert without them (--optimizer drop)",
              path);
}

// Where names are kept nothing explains the buffers, which can be told and need not be refused.
Status undo_flat_or_tell(const ConvertRequest& request, ConversionSource& source, Notes& notes) {
  Catalog named = source.wanted;
  const Result<bool> are_named = has_component_names(named) ? refuse_flat_states(request.input)
                                                            : name_states(source.checkpoint, named);
  if (!are_named) {
    notes.push_back(
        translated("optimizer states are copied in the flat buffers that they lie in, which "
                   "nothing in the new checkpoint explains: {}",
                   are_named.error().message));
    return {};
  }
  source.wanted = std::move(named);
  source.checks_master_weights = true;
  notes.emplace_back("optimizer states in flat buffers get the names of their tensors");
  return {};
}

// A loss is an error, unless the caller accepts it.
Status tell_loss(const ConvertRequest& request, Code code, const std::string& what, Notes& notes) {
  if (!request.accept_loss) return fail(code, "{}", what);
  notes.push_back("--accept-loss: " + what);
  return {};
}

// Under the names that they keep. What is left out by the caller's wish is no loss: where a part is
// wanted, all of the source is looked at.
Status check_kept_states(const ConvertRequest& request, const ConversionSource& source,
                         Notes& notes) {
  const bool is_part = !request.include.empty() || !request.exclude.empty();
  const bool wants_states = std::ranges::any_of(
      source.wanted.tensors,
      [](const StoredTensor& tensor) { return is_optimizer_name(tensor.desc.name); });
  if (is_part && !wants_states) return {};
  const Catalog& catalog = is_part ? source.checkpoint.catalog : source.wanted;
  if (has_unnamed_states(source.checkpoint, catalog)) return {};  // which was told
  const StateFindings found = SW_TRY(find_wrong_stored_states(source.checkpoint, catalog));
  for (const WrongState& state : found.wrong) {
    SW_TRY(tell_loss(request, Code::kOptimizerUnsupported, state.what, notes));
  }
  if (std::string note = note_on_frozen(found); !note.empty()) notes.push_back(std::move(note));
  return {};
}

Status check_settings(const ConvertRequest& request, const ConversionSource& source, bool is_part,
                      Notes& notes) {
  LostSettings lost = SW_TRY(find_lost_settings(source.checkpoint, source.wanted));
  if (!lost.states.empty() && !is_part) {
    SW_TRY(tell_loss(request, Code::kOptimizerUnsupported, lost.states, notes));
  }
  if (!lost.groups.empty()) {
    SW_TRY(tell_loss(request, Code::kStateUnreadable, lost.groups, notes));
  }
  std::ranges::move(lost.others, std::back_inserter(notes));
  return {};
}

}  // namespace

// That of legacy files is found only when it is wanted: its pickles are large.
Status read_optimizer(const ConvertRequest& request, ConversionSource& source, Notes& notes) {
  if (!source.checkpoint.has_unread_optimizer) return {};
  if (!keeps_optimizer(request)) {
    notes.emplace_back("optimizer state is dropped");
    return {};
  }
  const std::size_t told = source.checkpoint.notes.size();
  Defects first;
  source.checks_master_weights = SW_TRY(read_states(source.checkpoint, first));
  for (std::size_t i = told; i < source.checkpoint.notes.size(); ++i) {
    notes.push_back(source.checkpoint.notes[i]);
  }
  return {};
}

// What a flat buffer holds only the run's common state tells, which stays behind where names are
// kept; so its states get the names of their tensors there too.
Status undo_flat(const ConvertRequest& request, ConversionSource& source, Notes& notes) {
  if (!has_unnamed_states(source.checkpoint, source.wanted)) return {};
  if (source.is_mimo) return refuse_flat_states(request.input);
  if (keeps_names(request)) return undo_flat_or_tell(request, source, notes);
  source.checks_master_weights = SW_TRY(name_states(source.checkpoint, source.wanted));
  return {};
}

// A run would go on with what is missing as if it were zero.
Status check_states(const ConvertRequest& request, const ConversionSource& source, Notes& notes) {
  if (!keeps_optimizer(request) || source.is_mimo) return {};
  if (keeps_names(request)) return check_kept_states(request, source, notes);
  const StateFindings found =
      find_wrong_states(source.wanted, recorded_optimizer(source.checkpoint));
  const bool is_part = !request.include.empty() || !request.exclude.empty();
  for (const WrongState& state : found.wrong) {
    if (state.is_lone && is_part) continue;  // its weight may be what was left out
    SW_TRY(tell_loss(request, Code::kOptimizerUnsupported, state.what, notes));
  }
  if (std::string note = note_on_frozen(found); !note.empty()) notes.push_back(std::move(note));
  return check_settings(request, source, is_part, notes);
}

}  // namespace shardwright
