// SPDX-License-Identifier: Apache-2.0
#include "convert/lacking_tensors.h"

#include "base/notes.h"
#include "canonical/families.h"
#include "canonical/family_fit.h"
#include "canonical/model_facts.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

Status fit_of(const Drafting& drafting, std::span<const Mapping> mappings) {
  const std::vector<TensorDesc> canonical = SW_TRY(canonical_descs(drafting.catalog));
  Notes guesses;  // of a config.json that is not written
  const ModelFacts facts =
      SW_TRY(find_model_facts(drafting.request(), drafting.source(), mappings, canonical, guesses));
  return check_family_fit(facts, drafting.source(), canonical);
}

}  // namespace

// A part of a model, a pruned one and one of nobody's but its own are converted like any other, so
// nothing is refused, and of a family that nothing names there is nothing to say.
Status tell_lacking_tensors(Drafting& drafting) {
  const ConvertRequest& request = drafting.request();
  const bool is_of_megatron =
      !drafting.is_from_hf() && drafting.traits().names == TargetNames::kMegatron;
  const bool is_whole = request.include.empty() && request.exclude.empty();
  if (!is_of_megatron || !is_whole || !has_megatron_names(drafting.catalog)) return {};
  // A broken mapping file is reported by the step that needs it.
  const auto mappings = load_named_mappings(request, drafting.source());
  if (!mappings || mappings->empty()) return {};
  const Status fit = fit_of(drafting, *mappings);
  if (!fit && fit.error().code == Code::kUnmatchedTarget) drafting.tell(fit.error().message);
  return {};
}

}  // namespace shardwright
