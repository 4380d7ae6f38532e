// SPDX-License-Identifier: Apache-2.0
#include "canonical/hf_model.h"

#include <algorithm>
#include <iterator>

#include "base/fail.h"
#include "canonical/correspond.h"
#include "canonical/correspondence_notes.h"
#include "canonical/dequantise.h"
#include "canonical/exact_values.h"

namespace shardwright {

Result<Checkpoint> open_hf_model(const std::string& path, const FormatChoice& choice,
                                 std::string_view called) {
  Checkpoint model = SW_TRY(open_checkpoint(path, choice));
  const Location& location = model.location;
  if (location.traits.is_hf_model && !model.hf_config.empty()) return model;
  if (location.traits.is_hf_model) {
    return fail(Code::kUsage, "{}: the model's config.json is missing; put it beside the weights",
                called);
  }
  return fail(Code::kUsage,
              "{}: found a {} checkpoint, expected a Hugging Face model with its config.json",
              called, location.format);
}

Result<std::vector<DraftTensor>> draft_hf_model(const ModelFacts& facts, const HfModelUse& use,
                                                Catalog& catalog, SourceFiles& files,
                                                std::vector<QuantisedSource>& quantised,
                                                Notes& notes) {
  ModelTensors model = SW_TRY(model_tensors(catalog, facts.config_text, &files));
  declare_quantised(model, use.draft.dtype.value_or(DType::kBF16), catalog, quantised, notes);
  const Correspondence correspondence =
      SW_TRY(correspond_from_hf(facts, model, catalog, files, notes));
  model = {};
  if (use.tells_extras) tell_kept(correspondence, notes);
  std::vector<DraftTensor> drafts = SW_TRY(draft_from_hf(correspondence, catalog, use.draft));
  std::vector<DraftTensor> exact =
      SW_TRY(keep_exact_values(correspondence, catalog, drafts, files, notes));
  std::ranges::move(exact, std::back_inserter(drafts));
  return drafts;
}

}  // namespace shardwright
