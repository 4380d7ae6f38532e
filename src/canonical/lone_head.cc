// SPDX-License-Identifier: Apache-2.0
#include "canonical/lone_head.h"

#include <algorithm>

#include "base/fail.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "canonical/tied_head.h"
#include "model/instances.h"

namespace shardwright {

Status name_lone_head(const FamilyChoice& choice, const Checkpoint& checkpoint,
                      std::initializer_list<Catalog*> catalogs, Notes& notes) {
  const std::vector<TensorDesc> stored = descs_of(checkpoint.catalog);
  const std::string config = SW_TRY(config_text_of(choice, checkpoint));
  if (config.empty() || !has_head_alone(config, stored)) return {};
  const Mappings mappings = SW_TRY(load_mappings(choice, checkpoint));
  Notes told_later;
  const auto facts = find_model_facts(choice, checkpoint, mappings, {}, told_later);
  if (!facts) return {};  // told where the family is needed
  const std::vector<CopyInstance> copies = SW_TRY(copy_instances(*facts->mapping, facts->sizes));
  // Prediction layers have copies too, of the head.
  const auto head =
      std::ranges::find(copies, output_layer_names(stored).front(), &CopyInstance::hf);
  if (head == copies.end()) return {};
  const std::string& embedding = head->originals.front();
  for (Catalog* catalog : catalogs) {
    for (StoredTensor& tensor : catalog->tensors) {
      if (tensor.desc.name == head->hf) tensor.desc.name = embedding;
    }
  }
  notes.push_back(
      translated("{} is taken for {}: the model is tied, and the files have the one in place of "
                 "the other",
                 head->hf, embedding));
  return {};
}

}  // namespace shardwright
