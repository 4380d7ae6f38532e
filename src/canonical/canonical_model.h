// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "canonical/source_model.h"
#include "model/vocabulary_rows.h"
#include "plan/draft.h"
#include "shardwright/plan.h"

namespace shardwright {

/// A checkpoint of any format as Megatron's canonical tensors: one for each layer, under the names
/// that Transformer Engine's modules have, whatever the layout that stores them.
struct CanonicalModel {
  Checkpoint checkpoint;  ///< its catalog is what the recipes read
  std::vector<DraftTensor> tensors;
  std::vector<QuantisedSource> quantised;  ///< of a Hugging Face model
  std::vector<WeightedSource> weighted;    ///< halves of master weights
  std::string family;                      ///< empty where it is not known
  VocabularyRows vocabulary;
  bool has_states_by_tensor = true;  ///< all states are states of the model's tensors
  std::string states_left;           ///< else why, where it was tried
  std::string settings_left;  ///< why the settings of training were not read, if they were not
};

/// Whether canonical_model() can make one of it: a Hugging Face model, or Megatron's names.
[[nodiscard]] bool has_canonical_form(const Checkpoint& checkpoint);

/// Whether a canonical tensor is no weight that every form of the model has: an optimizer state, or
/// a value that only Hugging Face stores (`hf_extra.*`).
[[nodiscard]] bool is_beside_the_model(std::string_view name);

/// Makes the canonical model of a checkpoint. Of a Hugging Face model its family must be found; of
/// a Megatron checkpoint the family is used where it is known (rows of the vocabulary, shapes of
/// convolutions). Replicas and, for copies in a Hugging Face model, payloads are compared. `notes`
/// tell what is not the model's own. Errors: those of reading, those of finding
/// the family and of its mapping. REQUIRES: has_canonical_form().
[[nodiscard]] Result<CanonicalModel> canonical_model(SourceModel source, const FamilyChoice& choice,
                                                     Notes& notes);

}  // namespace shardwright
