// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/notes.h"
#include "canonical/model_facts.h"
#include "io/source_files.h"
#include "plan/draft.h"
#include "shardwright/plan.h"

namespace shardwright {

/// Opens a Hugging Face model that has its config.json. Errors: those of opening; kUsage for
/// anything else, which begins with `called`, the path as the user knows it.
[[nodiscard]] Result<Checkpoint> open_hf_model(const std::string& path, const FormatChoice& choice,
                                               std::string_view called);

/// What is to become of a Hugging Face model.
struct HfModelUse {
  DraftOptions draft;
  bool tells_extras = false;  ///< a note counts the tensors that Megatron has no place for
};

/// The Megatron tensors of a Hugging Face model that is stored in `catalog`, which gets the names
/// and shapes of the model; `quantised` says where scales are. What Megatron would round is kept
/// beside the tensors. `notes` tell of quantised tensors, copies and what is ignored. Errors: those
/// of model_tensors, correspond_from_hf and draft_from_hf; those of reading.
[[nodiscard]] Result<std::vector<DraftTensor>> draft_hf_model(
    const ModelFacts& facts, const HfModelUse& use, Catalog& catalog, SourceFiles& files,
    std::vector<QuantisedSource>& quantised, Notes& notes);

}  // namespace shardwright
