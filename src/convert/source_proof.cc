// SPDX-License-Identifier: Apache-2.0
#include "convert/source_proof.h"

#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/translated.h"
#include "compare/master_weights.h"
#include "format/select.h"
#include "format/targets.h"

namespace shardwright {
namespace {

// Names say whose the states are, but Megatron itself has given them to others.
Status look_at_masters(const ConversionSource& source, Notes& notes) {
  const SampledMasters sampled =
      SW_TRY(sample_master_weights(source.wanted, *source.checkpoint.files));
  if (sampled.strange.empty()) return {};
  notes.push_back(translated(
      "the master weights of {} of {} parameters that were looked at ({} the first) are not "
      "their weights: states are of another step, or were given to other parameters, as "
      "Megatron-Core does where it saves buckets with padding between them "
      "(--overlap-grad-reduce) as fully_reshardable; 'verify' looks at all; --optimizer drop "
      "leaves states out, and saves without --dist-ckpt-optim-fully-reshardable are right",
      sampled.strange.size(), sampled.looked_at, sampled.strange.front()));
  return {};
}

}  // namespace

// Which weights are their masters rounded is told by the run and by what it wrote. What a target
// takes the model from must be the model.
Status find_master_form(const ConvertRequest& request, ConversionSource& source, Notes& notes) {
  if (!keeps_optimizer(request) || !has_master_weights(source.wanted)) return {};
  source.master_form =
      SW_TRY(form_of_masters(source.checkpoint.arguments, source.wanted, *source.checkpoint.files));
  const std::string_view note = note_on_form(source.master_form);
  const bool has_main_weights = source.checkpoint.location.traits.weights_are_main;
  if (!note.empty()) {
    source.checks_master_weights = false;
    notes.emplace_back(note);
  } else if (!has_main_weights && traits_of(request.format).has_masters_for_model) {
    source.checks_master_weights = true;
  } else if (!has_main_weights && !source.checks_master_weights) {
    return look_at_masters(source, notes);
  }
  return {};
}

// Rules may be wrong, so what they say is proven; where it can't be, that is said.
Status tell_proof(ConversionSource& source, Notes& notes) {
  if (!source.checks_master_weights) return {};
  const MasterWeightCheck check = SW_TRY(plan_master_weights(source.wanted));
  if (check.bytes > 0) {
    notes.emplace_back(
        "whose each optimizer state is follows from Megatron's rules; before anything is written, "
        "every master weight is compared with its weight");
  }
  source.master_weight_bytes = check.bytes;
  const std::vector<std::string>& unproven = check.unproven;
  if (unproven.empty()) return {};
  std::vector<std::string_view> types;
  for (const DType type : check.unproven_types) types.push_back(torch_name(type));
  notes.push_back(translated(
      "{} parameters ({}), {} the first, have no master weight apart: nothing proves whose their "
      "states are but shapes, groups and order",
      unproven.size(), fmt::join(types, ", "), unproven.front()));
  return {};
}

}  // namespace shardwright
