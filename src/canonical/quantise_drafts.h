// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/notes.h"
#include "model/quantisation.h"
#include "model/quantise_choice.h"
#include "plan/draft.h"

namespace shardwright {

/// Puts values and scales in the place of each tensor that is to be quantised. Adds the modules
/// that stay as they are to the config of `choice`, where it should list them. Errors: kUsage where
/// nothing is quantised; kShapeMismatch for groups that do not fill a matrix; kDuplicateName.
[[nodiscard]] Status quantise_drafts(QuantiseChoice& choice, std::vector<DraftTensor>& drafts,
                                     Notes& notes);

/// Takes what is stored in the chosen form already out of the quantised tensors of `model`: values
/// and scales are plain tensors of it then. Gives drafts that copy them. REQUIRES: the model is
/// that of `catalog`. `changed`: tensors whose numbers are others than those stored.
[[nodiscard]] std::vector<DraftTensor> keep_quantised(
    const QuantiseChoice& choice, const Catalog& catalog,
    const std::set<std::string, std::less<>>& changed, ModelTensors& model);

/// Puts these drafts in the places of those of their names, whatever became of them.
void restore_kept(std::vector<DraftTensor> kept, std::vector<DraftTensor>& drafts);

}  // namespace shardwright
